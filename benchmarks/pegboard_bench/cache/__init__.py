"""What conversations are billed with each way of choosing tools, under the providers' rules of prompt caching."""
