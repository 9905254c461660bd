# A first program for `make run`: what does sandboxed code see of the machine?
import os
import socket


def attempt(what, action):
    try:
        print(f"{what:<28} {action()}")
    except OSError as error:
        print(f"{what:<28} refused: {error.strerror}")


attempt("my processes:", lambda: sorted(int(p) for p in os.listdir("/proc") if p.isdigit()))
attempt("what is in /home:", lambda: os.listdir("/home"))
attempt("the host's passwords:", lambda: open("/etc/shadow").read()[:20])
attempt("a file in /usr:", lambda: open("/usr/hello", "w"))
attempt("a connection to the world:", lambda: socket.socket())
attempt("a file of my own:", lambda: open("/tmp/hello", "w").write("hello") and "written")
sum(range(10))
