"""The local memory of every kernel in a library, as NVIDIA's cuobjdump tells it."""

import importlib.util
import pathlib
import re
import shutil
import subprocess


def find_cuobjdump():
    """The toolkit's, or the package's of that name; None where there is neither."""
    found = shutil.which("cuobjdump")
    if found is None:
        places = [pathlib.Path("/usr/local/cuda/bin/cuobjdump")]
        package = importlib.util.find_spec("nvidia")
        for folder in (package.submodule_search_locations if package else ()):
            places += sorted(pathlib.Path(folder).glob("cu*/bin/cuobjdump"))
        found = next((str(place) for place in places if place.is_file()), None)
    return found


def parse(text):
    """{(architecture, mangled name): bytes of stack a thread}"""
    stacks, architecture, name = {}, "", None
    for line in text.splitlines():
        if match := re.match(r"arch = (\S+)", line.strip()):
            architecture = match[1]
        elif match := re.match(r"Function (\S+?):", line.strip()):
            name = match[1]
        elif name and (match := re.search(r"\bSTACK:(\d+)", line)):
            stacks[architecture, name] = int(match[1])
            name = None
    return stacks


def of_library(tool, library):
    done = subprocess.run([tool, "--dump-resource-usage", str(library)], capture_output=True,
                          text=True, check=True)
    return parse(done.stdout)
