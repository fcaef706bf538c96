"""Vector indexes: exact in memory, FAISS in memory, or a Chroma server."""
