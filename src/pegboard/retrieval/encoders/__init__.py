"""Texts to vectors: by the bundled model (`onnx`) or a service (`remote`), with caches in front.

Begin with `onnx`, then `encoder_cache`, which wraps every encoder. A new service is a row in `providers`.
"""
