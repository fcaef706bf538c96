"""Ways out of the sandbox that were thought of: programs, each with what its refusal says. `find` is a function that
the program may call."""

from __future__ import annotations

ESCAPES = {
    "import a module of the system": ("import subprocess", "No module named"),
    "import what the environment has": ("import pegboard", "No module named"),
    "import by name": ("__import__('os')", "__import__"),
    "open a file": ("open('/etc/passwd').read()", "Permission denied"),
    "write a file": ("from pathlib import Path\nPath('escaped.txt').write_text('x')", "Permission denied"),
    "list a folder": ("import os\nos.listdir('/')", "Permission denied"),
    "read the environment": ("import os\nos.environ['HOME']", "not supported"),
    "start a process": ("import os\nos.system('id')", "no attribute"),
    "open a socket": ("import socket", "No module named"),
    "walk to all classes": ("().__class__.__bases__[0].__subclasses__()", "__class__"),
    "walk from a function": ("find.__globals__", "__globals__"),
    "walk from a frame": ("try:\n    1/0\nexcept Exception as e:\n    e.__traceback__.tb_frame", "__traceback__"),
    "the builtins": ("__builtins__.open", "__builtins__"),
    "code from text": ("exec('import ctypes')", "No module named"),
    "format strings": ("'{0.__class__.__init__.__globals__}'.format(find)", "no attribute"),
}
