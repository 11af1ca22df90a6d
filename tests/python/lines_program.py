"""Run by test_python_versions.py under each CPython: for each call, whether its line is found."""

import sys
import threading

sys.path.insert(0, sys.argv[1])
import frames_module


def here():
    frame = sys._getframe(1)
    name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)  # from 3.11 on
    return f"lines_program.py({frame.f_lineno}): {name}"


def check(found, expected):
    first = None if found is None else found.split(";")[0]
    print("same" if first == expected else f"{found} is not {expected}")


def plain():
    check(frames_module.line(), here())
    for _ in range(3):  # specialized instructions
        check(frames_module.line(), here())


def numbers():
    yield frames_module.line(), here()
    yield frames_module.line(), here()


def made_often():
    """From 3.13 on, a frame of Python's own stands between an __init__ that is called often and its caller."""
    found = []

    class Made:
        def __init__(self, is_hot):
            if is_hot:
                found.append((frames_module.line(), here()))

    for i in range(100):
        Made(i >= 50)
        caller = here()
    for line, expected in found:
        frames = line.split(";") if line else []
        print("same" if frames == [expected, line_before(caller)] else f"{frames} has not {expected}, {caller}")


def line_before(place):
    file, _, rest = place.partition("(")
    number, _, name = rest.partition(")")
    return f"{file}({int(number) - 1}){name}"


class WithNew:
    def __init__(self):
        check(frames_module.line(), here())

    def __getattr__(self, name):
        check(frames_module.line(), here())
        return 1


def caught():
    try:
        raise ValueError
    except ValueError:
        check(frames_module.line(), here())


def deep(n):
    if n:
        return deep(n - 1)
    check(frames_module.line(), here())
    return None


made_often()  # first: what is known of the frames is compared with a stack that has such a frame
plain()
for found, expected in numbers():
    check(found, expected)
made = WithNew()
assert made.missing == 1
sorted([2, 1], key=lambda x: check(frames_module.line(), here()) or x)  # C calls Python
caught()
deep(100)
thread = threading.Thread(target=plain)
thread.start()
thread.join()
exec(compile("\n\nfound = frames_module.line()", "made.py", "exec"))
check(found, "made.py(3): <module>")
