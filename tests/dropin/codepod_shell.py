"""What the expectations of codepod share."""


SLOW = 150000  # pip looks at every package of the machine


def out(sandbox, command, timeout=None):
    r = sandbox.commands.run(command, timeout_ms=timeout)
    assert r.exit_code == 0, r
    return r.stdout


def says(text="", code=0, **more):
    return lambda **_: dict({"stdout": text, "exitCode": code}, **more)
