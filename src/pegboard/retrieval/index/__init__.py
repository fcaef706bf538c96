"""Where the vectors of tools are: exact in memory, FAISS in memory, or a Chroma server."""
