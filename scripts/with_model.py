"""Serves a model by llama.cpp, with OpenAI's API, for as long as a command runs.

    .demo/model/server/bin/python scripts/with_model.py .demo/model/model.gguf COMMAND ... --model-url {url}

`{url}` in the command is where the model is. Exits as the command does.
"""

from __future__ import annotations

import subprocess
import sys

import xllamacpp

WINDOW = 32_768
"""Tokens that the model was trained to read."""


def serve(weights: str) -> xllamacpp.Server:
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.use_jinja = True
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = 0
    return xllamacpp.Server(params)


if __name__ == "__main__":
    server = serve(sys.argv[1])
    url = f"{server.listening_address}/v1"
    sys.exit(subprocess.run([word.replace("{url}", url) for word in sys.argv[2:]], check=False).returncode)
