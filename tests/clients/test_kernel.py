"""cordon.kernel as `cordon kernel install` sets it up, driven by Debian's python3-jupyter-client."""
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

import zmq
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

SECONDS = 60
CLIENTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "clients", "python")


def install(folder, *options):
    r = subprocess.run([os.environ["CORDON"], "kernel", "install", "--prefix", folder, "--python", sys.executable, *options],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return r.returncode, r.stdout + r.stderr


@contextlib.contextmanager
def kernel(*options, name="cordon-python"):
    """A client of a kernel that was installed with these options, and its manager."""
    with tempfile.TemporaryDirectory(prefix="cordon-kernel-") as folder:
        status, said = install(folder, *options)
        assert status == 0, said
        specs = KernelSpecManager(kernel_dirs=[os.path.join(folder, "share/jupyter/kernels")], ensure_native_kernel=False)
        assert name in specs.find_kernel_specs()
        manager = KernelManager(kernel_name=name, kernel_spec_manager=specs, connection_file=os.path.join(folder, "connection.json"))
        env = dict(os.environ, PYTHONPATH=CLIENTS, PYTHONDONTWRITEBYTECODE="1")
        manager.start_kernel(env=env)
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=SECONDS)
            yield client, manager
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


def run(client, code, **options):
    """The reply, and what was published meanwhile, as (type, content)."""
    said = []
    reply = client.execute_interactive(code, timeout=SECONDS, allow_stdin=False, output_hook=lambda m: said.append((m["msg_type"], m["content"])), **options)
    return reply["content"], said


def of(said, kind):
    return [content for name, content in said if name == kind]


def stream(said, name):
    return "".join(c["text"] for c in of(said, "stream") if c["name"] == name)


def value(client, code):
    return of(run(client, code)[1], "execute_result")[0]["data"]["text/plain"]


def wait_for_output(client, id):
    while True:
        message = client.get_iopub_msg(timeout=SECONDS)
        if message["msg_type"] == "stream" and message["parent_header"].get("msg_id") == id:
            return


def ask(client, id):
    while True:
        reply = client.get_shell_msg(timeout=SECONDS)
        if reply["parent_header"].get("msg_id") == id:
            return reply["content"]


def test_kernel_executes():
    with kernel() as (client, _):
        info = ask(client, client.kernel_info())
        assert info["implementation"] == "cordon" and info["language_info"]["name"] == "python" and info["language_info"]["version"], info
        reply, said = run(client, "import sys\nprint('out')\nprint('err', file=sys.stderr)\nx = 6\nx * 7")
        assert (reply["status"], reply["execution_count"]) == ("ok", 1), reply
        assert (stream(said, "stdout"), stream(said, "stderr")) == ("out\n", "err\n"), said
        result, = of(said, "execute_result")
        assert (result["data"], result["execution_count"]) == ({"text/plain": "42"}, 1)
        assert [c["execution_count"] for c in of(said, "execute_input")] == [1]
        reply, said = run(client, "x + 1", store_history=False)
        assert reply["execution_count"] == 1 and of(said, "execute_result")
        reply, said = run(client, "x = 8; print('quiet'); x", silent=True)
        assert reply["status"] == "ok" and not of(said, "execute_result") and not of(said, "stream") and not of(said, "execute_input"), said
        reply, said = run(client, "")
        assert reply["status"] == "ok" and not of(said, "execute_result")
        assert value(client, "x") == "8"
        # A file of the host is not there; the notebook's own folder is the sandbox's.
        assert value(client, "import os; os.getcwd()") == "'/home/user'"


def test_kernel_displays():
    png = "iVBORw0KGgo="
    with kernel() as (client, _):
        shows = "import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('%s')\ndisplay(P())" % png
        shown = of(run(client, shows)[1], "display_data")
        assert [d["data"].get("image/png", "").strip() for d in shown] == [png], shown
        said = run(client, "class H:\n    def _repr_html_(self): return '<b>h</b>'\n    def __repr__(self): return 'plain'\nH()")[1]
        assert of(said, "execute_result")[0]["data"] == {"text/plain": "plain"}, said


ACTIVE = """
class Active:
    def __repr__(self): return 'plain'
    def _repr_html_(self): return '<script>alert(1)</script>'
    def _repr_javascript_(self): return 'alert(1)'
    def _repr_svg_(self): return '<svg><script>alert(1)</script></svg>'
    def _repr_markdown_(self): return '<script>alert(1)</script>'
    def _repr_latex_(self): return '<script>alert(1)</script>'
    def _repr_json_(self): return {'columns': ['<script>'], 'index': [0], 'data': [['<script>']]}
    def _repr_mimebundle_(self, **_): return {'text/vnd.x': '<script>', 'image/png': '<script>', 'text/plain': 'plain'}
"""


def test_kernel_shows_nothing_that_the_page_would_run():
    with kernel("--timeout", "none") as (client, _):
        run(client, ACTIVE)
        for code in ("Active()", "display(Active())", "display(Active(), Active())"):
            reply, said = run(client, code)
            assert reply["status"] == "ok", reply
            forms = [c["data"] for kind in ("execute_result", "display_data") for c in of(said, kind)]
            assert forms, said
            for data in forms:
                assert set(data) <= {"text/plain", "text/html", "image/png", "image/jpeg", "image/gif"}, data
                assert "<script" not in data.get("text/html", "") + data.get("image/png", ""), data
        table = "import pandas; pandas.DataFrame({'<script>': ['<img src=x onerror=alert(1)>', None]})"
        reply, said = run(client, table)
        if reply["status"] == "error":
            assert reply["ename"] == "ModuleNotFoundError", reply
            return
        page = of(said, "execute_result")[0]["data"]["text/html"]
        assert page == ("<table><thead><tr><th></th><th>&lt;script&gt;</th></tr></thead><tbody><tr><th>0</th>"
                        "<td>&lt;img src=x onerror=alert(1)&gt;</td></tr><tr><th>1</th><td></td></tr></tbody></table>"), page


def test_kernel_plots():
    with kernel("--profile", "data-science") as (client, _):
        reply, said = run(client, "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()")
        if importlib.util.find_spec("matplotlib") is None:
            assert reply["ename"] == "ModuleNotFoundError", reply  # test_kernel_displays goes the same way
            return
        assert reply["status"] == "ok", reply
        images = [d["data"]["image/png"] for d in of(said, "display_data") if "image/png" in d["data"]]
        assert len(images) == 1 and images[0].startswith("iVBOR"), said


def test_kernel_errors():
    with kernel("--timeout", "none") as (client, manager):
        reply, said = run(client, "def f():\n    return 1 / 0\nf()")
        error, = of(said, "error")
        assert (reply["status"], reply["ename"], error["ename"]) == ("error", "ZeroDivisionError", "ZeroDivisionError"), reply
        assert "division by zero" in error["evalue"] and any("return 1 / 0" in line for line in error["traceback"]), error
        assert run(client, "1 +")[0]["ename"] == "SyntaxError"
        # What was sent before the failure is not run, unless the request says so.
        first = client.execute("print('running', flush=True)\nwhile True: pass")
        second = client.execute("open('b', 'w').close()")
        third = client.comm_info()
        wait_for_output(client, first)
        manager.interrupt_kernel()
        assert ask(client, first)["status"] == "error"
        assert ask(client, second)["status"] == "aborted"
        assert ask(client, third)["status"] == "ok"  # only executions are dropped
        assert value(client, "__import__('os').path.exists('b')") == "False"
        run(client, "1 / 0", stop_on_error=False)
        assert value(client, "2") == "2"


def test_kernel_denials():
    with kernel() as (client, _):
        said = run(client, "import socket\nsocket.socket(socket.AF_PACKET)")[1]
        assert "denied: socket " in stream(said, "stderr") and "to allow it: " in stream(said, "stderr"), said
    with kernel("--level", "strict", "--set", "timeout_ms=300") as (client, _):
        reply, said = run(client, "while True: pass")
        assert reply["ename"] == "timeout" and "State kept" in stream(said, "stderr"), (reply, said)


def test_kernel_interrupts():
    with kernel("--timeout", "none") as (client, manager):
        run(client, "kept = 5")
        id = client.execute("print('running', flush=True)\nwhile True: pass")
        wait_for_output(client, id)
        manager.interrupt_kernel()
        reply = ask(client, id)
        assert reply["status"] == "error" and "KeyboardInterrupt" in reply["ename"] + "".join(reply["traceback"]), reply
        assert value(client, "kept") == "5"


def test_kernel_completes():
    with kernel() as (client, _):
        run(client, "variable_a = 1; variable_b = 2")
        reply = ask(client, client.complete("print(varia", 11))
        assert reply["status"] == "ok" and {"variable_a", "variable_b"} <= set(reply["matches"]), reply
        assert (reply["cursor_start"], reply["cursor_end"]) == (6, 11), reply
        for code, status in (("1 + 1", "complete"), ("for i in x:", "incomplete"), ("1 +* 1", "invalid")):
            assert ask(client, client.is_complete(code))["status"] == status, code
        assert ask(client, client.inspect("variable_a"))["found"] is False
        assert ask(client, client.history())["history"] == []


def test_kernel_restarts_and_ends():
    with kernel() as (client, manager):
        run(client, "x = 1")
        manager.restart_kernel()
        client.wait_for_ready(timeout=SECONDS)
        assert run(client, "x")[0]["ename"] == "NameError"
        client.shutdown()
        end = time.monotonic() + SECONDS
        while manager.is_alive():
            assert time.monotonic() < end, "it still runs"
            time.sleep(0.01)


def test_kernel_drops_what_is_not_signed():
    with kernel() as (client, manager):
        stranger = zmq.Context.instance().socket(zmq.DEALER)
        stranger.connect("tcp://%s:%d" % (client.ip, client.shell_port))
        session = client.session
        message = session.msg("execute_request", {"code": "stolen = 1", "silent": False})
        signed = session.serialize(message)
        forged = list(signed)
        forged[1] = b"0" * 64
        changed = list(signed)
        changed[-1] = json.dumps({"code": "stolen = 2", "silent": False}).encode()
        for frames in ([b"x"], [b"<IDS|MSG>"], [b"<IDS|MSG>", b"", b"{}", b"{}", b"{}", b"{}"], forged, changed):
            stranger.send_multipart(frames)
        assert run(client, "stolen")[0]["ename"] == "NameError"
        stranger.send_multipart(signed)  # the control: signed as it should be
        assert stranger.poll(SECONDS * 1000)
        stranger.recv_multipart()
        run(client, "stolen += 1")
        stranger.send_multipart(signed)  # once more: nobody may replay it
        assert value(client, "stolen") == "2"
        stranger.close(0)


def test_kernel_of_other_languages():
    with kernel("--language", "r", name="cordon-r") as (client, _):
        reply, said = run(client, "x <- 20\nx + 1\nf <- function(a) {\n  a * 2\n}\nf(x + 1)")
        assert reply["status"] == "ok", reply
        assert "21" in of(said, "display_data")[0]["data"]["text/plain"] and "42" in of(said, "execute_result")[0]["data"]["text/plain"], said
    with kernel("--language", "sh", "--name", "walled.sh", name="walled.sh") as (client, _):
        assert stream(run(client, "a=6; echo $((a * 7))")[1], "stdout") == "42\n"


def test_kernel_installation():
    with tempfile.TemporaryDirectory(prefix="cordon-kernel-") as folder:
        for wrong in (["--language", "cobol"], ["--name", "../x"], ["--name", ".."], ["--name", "a/b"], ["--name", ""], ["--user"], ["--level", "lax"],
                      ["--set", "timeout_ms=soon"]):
            status, said = install(folder, *wrong)
            assert status == 2 and os.listdir(folder) == [], (wrong, status, said)
        status, said = install(folder, "--title", "Walled \"Python\"", "--level", "strict")
        assert status == 0, said
        where = os.path.join(folder, "share/jupyter/kernels/cordon-python")
        with open(os.path.join(where, "kernel.json")) as f:
            spec = json.load(f)
        assert spec["display_name"] == "Walled \"Python\"" and spec["interrupt_mode"] == "message" and spec["env"]["CORDON"].startswith("/"), spec
        with open(os.path.join(where, "policy.json")) as f:
            assert json.load(f)["level"] == "strict"
        assert install(folder)[0] != 0 and install(folder, "--force")[0] == 0
        env = dict(os.environ, JUPYTER_DATA_DIR=os.path.join(folder, "data"))
        subprocess.run([os.environ["CORDON"], "kernel", "install", "--user"], env=env, check=True, stdout=subprocess.DEVNULL)
        assert os.path.exists(os.path.join(folder, "data/kernels/cordon-python/kernel.json"))


def test_kernel_refuses_bad_connections():
    good = {"transport": "tcp", "ip": "127.0.0.1", "key": "k", "signature_scheme": "hmac-sha256",
            **{n + "_port": 0 for n in ("shell", "control", "stdin", "iopub", "hb")}}
    for wrong, why in (({"key": ""}, "no key"), ({"signature_scheme": "none"}, "signature_scheme"), ({"signature_scheme": "hmac-nothing"}, "signature_scheme")):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(dict(good, **wrong), f)
            f.flush()
            r = subprocess.run([sys.executable, "-m", "cordon.kernel", "-f", f.name], env=dict(os.environ, PYTHONPATH=CLIENTS), stderr=subprocess.PIPE, text=True)
            assert r.returncode == 1 and why in r.stderr, r.stderr


for _test in [v for k, v in list(globals().items()) if k.startswith("test_")]:
    _test.is_local = True
