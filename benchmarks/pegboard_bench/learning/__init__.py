"""What a deployment's own queries teach: a threshold, a fusion, and whether either is better than what ships."""
