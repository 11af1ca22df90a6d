"""What `firelane attach` runs in a program, on its main thread between two bytecodes: starts a thread, and returns.

It is executed as text, not imported, with two names: PLACE (JSON: where to answer, where our package is) and PAGE (the
memory that the text was in). Nothing of it stays: no name in the program's modules, no entry of sys.path.
"""

import json
import threading
from typing import Any

PLACE = globals()["PLACE"]
PAGE = globals()["PAGE"]


def _serve(place: dict[str, Any], page: int) -> None:
    import ctypes
    import os
    import socket
    import sys

    if page:
        ctypes.CDLL(None).munmap(ctypes.c_void_p(page), ctypes.c_size_t(place["page_bytes"]))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect("\0" + place["address"])
        except OSError:
            return  # who asked has given up
        ours = os.path.dirname(place["package"])
        path = [ours] if place["prefer_ours"] else []
        sys.path[:0] = path
        try:
            from firelane import _attach
        except BaseException as error:
            have = getattr(sys.modules.get("firelane"), "__file__", None)
            where = f"the firelane that it has imported ({have})" if have else "firelane"
            hint = "" if place["prefer_ours"] else "; pip install firelane into its environment"
            version = f"{sys.version_info[0]}.{sys.version_info[1]}"
            text = f"refused {where} does not fit this program's Python {version}: {error}{hint}"
            connection.sendall((" ".join(text.split()) + "\n").encode())
            return
        finally:
            for entry in path:
                sys.path.remove(entry)
        _attach.serve(connection)


threading.Thread(target=_serve, args=(json.loads(PLACE), PAGE), name="firelane-attach", daemon=True).start()
