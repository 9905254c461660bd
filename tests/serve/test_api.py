"""RPC covers the whole C API: the table has a row for every public function."""
import base64
import http.server
import json
import os
import re
import threading
import time

from driver import ROOT, SCHEMA, Client, Failure, is_alive, method_schema

# The methods through which a function is reached; or why there is none ("-").
TABLE = {
    "cordon_audit_verify": "audit.verify",
    "cordon_call_args": "tool.call", "cordon_call_error": "tool.call", "cordon_call_session": "tool.call",
    "cordon_call_tool": "tool.call", "cordon_call_value": "tool.call",
    "cordon_code_exit_status": "- exit statuses are those of a command line",
    "cordon_code_name": "errors", "cordon_code_rpc": "errors",
    "cordon_doctor": "doctor", "cordon_prove": "doctor.prove",
    "cordon_error_cause": "errors", "cordon_error_code": "errors", "cordon_error_errno": "errors", "cordon_error_message": "errors",
    "cordon_error_free": "- memory",
    "cordon_export_diff": "export.diff", "cordon_export_list": "export.list", "cordon_export_read": "export.read",
    "cordon_fetch": "fetch", "cordon_fetch_done": "- memory",
    "cordon_file_append": "files.append", "cordon_file_get_tar": "files.get_tar", "cordon_file_list": "files.list",
    "cordon_file_mkdir": "files.mkdir", "cordon_file_move": "files.move", "cordon_file_put_tar": "files.put_tar",
    "cordon_file_read": "files.read", "cordon_file_read_at": "files.read", "cordon_file_remove": "files.remove",
    "cordon_file_stat": "files.stat", "cordon_file_write": "files.write",
    "cordon_watch_open": "files.watch", "cordon_watch_wait": "files.changes", "cordon_watch_close": "files.unwatch",
    "cordon_files_export": "files.export", "cordon_files_import": "files.import",
    "cordon_process_kill": "process.kill", "cordon_process_list": "process.list", "cordon_process_output": "process.output", "cordon_process_resize": "process.resize", "cordon_process_signal": "process.signal",
    "cordon_process_start": "session.command", "cordon_process_wait": "process.wait", "cordon_process_write": "process.write",
    "cordon_session_expose": "session.expose", "cordon_session_exposed": "session.exposed",
    "cordon_session_unexpose": "session.unexpose",
    "cordon_session_command": "session.command", "cordon_session_context": "session.context",
    "cordon_session_inspect": "session.inspect",
    "cordon_pod_add": "pod.add", "cordon_pod_list": "pod.list", "cordon_pod_remove": "pod.remove",
    "cordon_policy_apply_file": "- the client reads its files and sends `policy`",
    "cordon_policy_apply_json": "session.open", "cordon_policy_check": "policy.check", "cordon_policy_copy": "- memory",
    "cordon_policy_diff": "policy.diff", "cordon_policy_explain": "policy.check", "cordon_policy_free": "- memory",
    "cordon_policy_json": "policy.show", "cordon_policy_new": "policy.show", "cordon_policy_set": "session.open",
    "cordon_pool_acquire": "pool.acquire", "cordon_pool_execute": "pool.execute", "cordon_pool_free": "pool.close",
    "cordon_pool_get_status": "pool.status", "cordon_pool_new": "pool.open", "cordon_pool_release": "session.close",
    "cordon_project_apply": "project.apply", "cordon_project_close": "project.close", "cordon_project_diff": "project.diff",
    "cordon_project_open": "project.open",
    "cordon_result_denials_text": "- a text for people; the denials are in the result", "cordon_result_error": "session.execute",
    "cordon_result_error_kind": "session.execute", "cordon_result_exit_status": "run", "cordon_result_truncated": "session.execute", "cordon_result_free": "- memory",
    "cordon_result_buffer": "session.execute", "cordon_result_json": "session.execute", "cordon_result_stderr": "session.execute", "cordon_result_stdout": "session.execute",
    "cordon_result_success": "session.execute", "cordon_result_traceback": "session.execute",
    "cordon_result_value_json": "session.execute", "cordon_result_value_text": "session.execute",
    "cordon_attacks": "- their names are in the answer of doctor.prove",
    "cordon_result_losses_text": "- a text for people; what was lost is among the warnings of the result",
    "cordon_session_end": "session.close", "cordon_session_save": "- sessions save by themselves, and session.close tells what they could not",
    "cordon_result_warnings_text": "- a text for people; the warnings are in the result",
    "cordon_run": "session.run", "cordon_sanitize": "sanitize",
    "cordon_saved_import": "saved.import", "cordon_saved_list": "saved.list", "cordon_saved_open": "saved.read",
    "cordon_saved_remove": "saved.remove",
    "cordon_session_cancel": "session.cancel", "cordon_session_close": "session.close",
    "cordon_session_describe": "session.describe", "cordon_session_execute": "session.execute",
    "cordon_session_fork": "session.fork", "cordon_session_id": "session.list", "cordon_session_interrupt": "session.interrupt",
    "cordon_session_kill": "- session.close uses it", "cordon_result_restart_text": "- a text for people; restart_reason is in the result",
    "cordon_session_is_alive": "session.describe", "cordon_session_offload": "offload", "cordon_session_open": "session.open",
    "cordon_session_rehydrate": "rehydrate", "cordon_session_resolve": "approval.resolve",
    "cordon_session_install": "session.install", "cordon_session_restart": "session.restart", "cordon_session_setenv": "session.setenv",
    "cordon_session_getenv": "env.get",
    "cordon_snapshot_create": "snapshot.create", "cordon_snapshot_list": "snapshot.list",
    "cordon_snapshot_remove": "snapshot.remove", "cordon_snapshot_restore": "snapshot.restore",
    "cordon_tools_add": "session.open", "cordon_tools_add_file": "- the client reads its files and sends `host_tools`",
    "cordon_tools_add_json": "session.open", "cordon_tools_json": "session.describe", "cordon_tools_new": "- memory",
    "cordon_tools_ref": "- memory", "cordon_tools_unref": "- memory",
    "cordon_validate": "validate", "cordon_version": "version",
}
# Fields of the option structs, and the parameters they come from; "-": why not.
FIELDS = {
    "cordon_session_options": {
        "guest": "guest", "policy": "policy", "tools": "tools", "workspace": "workspace", "env": "env", "approval": "- approval",
        "pre_execute": "- a client decides before it sends", "pre_execute_arg": "-",
        "approval_arg": "-", "audit": "audit", "audit_arg": "-", "log": "verbose", "log_arg": "-", "directory": "directory", "cold": "cold", "packages": "packages",
        "languages": "languages"},
    "cordon_command_options": {
        "command": "command", "directory": "cwd", "env": "env", "stdin_bytes": "stdin", "stdin_len": "-", "timeout_ms": "timeout_ms",
        "output": "stream", "output_arg": "-", "discard_output": "keep_output", "ended": "- process.ended", "ended_arg": "-",
        "forget": "- of a command that is not in the background", "pty": "pty", "pty_rows": "pty", "pty_columns": "pty"},
    "cordon_expose_options": {"host_port": "host_port", "path": "path"},
    "cordon_execute_options": {
        "code": "code", "code_len": "-", "context_json": "context", "buffer_json": "buffer", "buffer_fd": "- the attachment", "takes_buffer": "buffers",
        "stdin_bytes": "stdin", "stdin_len": "-", "output": "stream",
        "output_arg": "-", "discard_output": "keep_output", "timeout_ms": "timeout_ms", "tool_calls": "tool_calls",
        "skip_validation": "validate", "stdin_fd": "- descriptors do not travel",
        "stdin_read": "- of a terminal", "stdin_unread": "- of a terminal", "stdin_arg": "-", "args": "- of `cordon run FILE ARG`",
        "show_values": "- a client has the values"},
    "cordon_pool_options": {"session": "-", "size": "size", "max_size": "max_size", "reuse": "reuse"},
    "cordon_tool": {
        "name": "name", "description": "description", "args_json": "args", "category": "category", "usage": "usage",
        "examples": "examples", "fn": "-", "arg": "-", "max_calls": "max_calls", "timeout_ms": "timeout_ms",
        "result_bytes": "result_bytes", "argument_bytes": "argument_bytes", "approval": "approval", "command": "command",
        "python_package": "python_package"},
    "cordon_prove_options": {"only": "attack", "guest": "guest", "allow_host": "allow_host", "control": "control", "quick": "quick",
                             "progress": "-", "progress_arg": "-"},
    "cordon_fetch_options": {"policy": "policy", "url": "url", "method": "method", "headers": "headers", "body": "body", "body_len": "-",
                             "no_redirects": "follow", "https_only": "https_only", "ca_file": "ca_file", "event": "- the answer says it",
                             "arg": "-"},
    "cordon_pod_add_options": {"replace": "replace", "timeout_ms": "timeout_ms"},
}
PARAMS = {"cordon_expose_options": "session.expose", "cordon_session_options": "session.open", "cordon_command_options": "session.command", "cordon_execute_options": "session.execute", "cordon_pool_options": "pool.open",
          "cordon_prove_options": "doctor.prove", "cordon_fetch_options": "fetch", "cordon_pod_add_options": "pod.add"}


def headers():
    folder = os.path.join(ROOT, "include", "cordon")
    text = ""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as f:
            text += re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
    return text


def public_functions(text):
    return set(re.findall(r"\b(cordon_\w+)\s*\((?!\*)", re.sub(r"^\s*#.*$", "", re.sub(r"typedef[^;]*;", "", text), flags=re.M)))


def fields_of(text, name):
    body = re.search(r"struct %s \{(.*?)\n\};" % name, text, re.S).group(1)
    found = []
    for line in re.sub(r"\s+", " ", body).split(";"):
        pointer = re.search(r"\(\*(\w+)\)\(", line)
        last = re.search(r"(\w+)\s*$", line.split("(")[0] if pointer else line)
        if pointer:
            found.append(pointer.group(1))
        elif last:
            found += [re.search(r"(\w+)\s*$", w).group(1) for w in line.split(",")]
    return found


def test_every_public_function_has_a_row():
    found = public_functions(headers())
    assert len(found) > 90, len(found)
    assert found == set(TABLE), "without a row: %s; gone: %s" % (sorted(found - set(TABLE)), sorted(set(TABLE) - found))


def test_every_row_names_something_that_is_there():
    known = set(SCHEMA["methods"]) | set(SCHEMA["callbacks"]) | {"errors"}
    for function, method in TABLE.items():
        assert method.startswith("- ") or method in known, (function, method)
    with Client() as c:
        there = set(c.call("initialize")["methods"])
    assert {m for m in TABLE.values() if m in SCHEMA["methods"]} <= there


def test_every_option_has_a_parameter():
    text = headers()
    for struct, rows in FIELDS.items():
        found = fields_of(text, struct)
        assert sorted(found) == sorted(rows), (struct, found)
        if struct == "cordon_tool":
            takes = method_schema("session.open")["params"]["properties"]["tools"]["items"]["properties"]
        else:
            takes = method_schema(PARAMS[struct])["params"]["properties"]
        for field, param in rows.items():
            assert param.startswith("-") or param in takes, (struct, field, param)


def test_a_new_function_would_be_noticed():
    text = headers() + "\nint cordon_session_levitate(struct cordon_session *s,\n\tstruct cordon_error **reterr);\n"
    assert public_functions(text) - set(TABLE) == {"cordon_session_levitate"}


def test_unknown_parameters_are_refused():
    """By every method; a word that was misspelt might be what the client relies on."""
    with Client() as c:
        for name in SCHEMA["methods"]:
            schema = method_schema(name)["params"]
            if schema.get("additionalProperties", True) or name == "kill":
                continue
            c.fails(-32602, "unknown parameter 'bogus_param' of %s" % name, name, bogus_param=1)
        c.fails(-32602, "did you mean 'level'?", "session.open", levl="strict")
        c.fails(-32602, "did you mean 'timeout_ms'?", "session.execute", session="x", code="1", timeout_m=5)


def test_every_parameter_of_the_schema_is_known():
    with Client() as c:
        for name in SCHEMA["methods"]:
            if name in ("kill", "doctor.prove", "fetch"):
                continue
            for param in method_schema(name)["params"].get("properties", {}):
                try:
                    c.call(name, lawful=False, **{("from_" if param == "from" else param): []})
                except Failure as f:
                    assert "unknown parameter" not in f.message, (name, param, f)


def test_verbose():  # LOG-01
    with Client(tools={"add": lambda a, b: a + b}) as c:
        s = c.open(guest="python", verbose=True, tools=[{"name": "add", "args": {"a": "number", "b": "number"}}])
        c.execute(s, "add(2, 3)")
        c.call("session.close", session=s)
        events = [e["event"] for e in c.notes("log") if e["session_id"] == s]
        assert events == ["session_start", "execute_start", "tool_call", "tool_result", "execute_complete", "session_close"], events
        assert "add(2, 3)" not in json.dumps(c.notes("log")), "the code stays out of it"
        quiet = c.open(guest="python")
        c.execute(quiet, "1")
        assert not [e for e in c.notes("log") if e["session_id"] == quiet]
        c.fails(-32602, "verbose", "session.open", verbose="yes")


def test_tools_that_are_commands_of_the_host():
    with Client(tools={"pi": lambda: 3.5}) as c:
        tools = [{"name": "size", "args": {"word": "string"}, "command": ["/usr/bin/python3", "-c",
                  "import json,sys; print(len(json.load(sys.stdin)['word']))"]},
                 {"name": "shout", "description": "upper case", "command": ["/usr/bin/tr", "a-z", "A-Z"], "argv": True}]
        s = c.open(guest="python", host_tools=tools, tools=[{"name": "pi"}])
        assert c.execute(s, "size('four') + pi()")["result"] == 7.5  # beside the client's own
        assert not c.execute(s, "size(4)")["success"]  # and checked as they are
        s = c.open(guest="sh", host_tools=tools)
        assert c.execute(s, "echo hello | shout")["stdout"] == "HELLO\n"
        c.fails(-32602, "", "session.open", host_tools=[{"name": "x"}])
        c.fails(-32602, "host_tools", "session.open", host_tools={"name": "x"})
        c.fails(-32008, "Duplicate", "session.open", host_tools=tools, tools=[{"name": "shout"}])


def test_pod_commands():
    with Client() as c:
        r = c.call("pod.list")
        assert isinstance(r["programs"], list)
        c.fails(-32602, "Missing required param: name", "pod.add", data="")
        bad = dict(name="evil", data=base64.b64encode(b"no module").decode())
        if r["image"]:
            c.fails(-32602, "", "pod.add", **bad)
        else:
            c.fails(-32006, "no pod image", "pod.add", **bad)
        try:
            c.call("pod.remove", name="nobody-added-this")
            raise AssertionError("removed")
        except Failure as f:
            assert f.code in (-32005, -32602), f


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/there":
            self.send_response(302)
            self.send_header("Location", "/here")
            self.end_headers()
            return
        body = b"bytes \xff " + self.headers.get("X-Say", "").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_fetch():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d" % server.server_port
    try:
        with Client() as c:
            c.fails(-32002, "", "fetch", url=url + "/here")  # the standard policy opens nothing
            policy = {"network": {"allow": ["127.0.0.1:%d" % server.server_port]}}
            r = c.call("fetch", url=url + "/there", policy=policy, headers=["X-Say: hi"])
            assert base64.b64decode(r["data"]) == b"bytes \xff hi" and r["redirects"] == 1 and r["url"] == url + "/here", r
            assert c.call("fetch", url=url + "/there", policy=policy, follow=False)["status"] == 302
            r = c.call("fetch", url=url, method="POST", body_base64=base64.b64encode(bytes(range(256))).decode(), policy=policy)
            assert r["status"] == 201 and base64.b64decode(r["data"]) == bytes(range(256))
            c.fails(-32602, "headers", "fetch", url=url, headers=[1], policy=policy)
            c.fails(-32002, "", "fetch", url=url, https_only=True, policy=policy)
    finally:
        server.shutdown()


def test_prove():
    with Client() as c:
        n = c.send("doctor.prove", {"guest": "sh", "quick": True})
        c.fails(-32600, "already running", "doctor.prove")
        assert c.call("version")["name"] == "cordon"  # others go on
        r = c.wait(n, 50)
        assert r["open"] == 0 and r["broken"] == 0 and r["held"] > 10, {k: r[k] for k in ("held", "open", "broken")}
        steps = c.notes("progress")
        assert len(steps) >= len(r["attacks"]) and all(s["request_id"] == n for s in steps)
        c.fails(-32602, "no report", "doctor.prove", attack="nobody knows this one")
        c.fails(-32602, "", "doctor.prove", attack=7)


def test_prove_can_be_cancelled():
    with Client() as c:
        n = c.send("doctor.prove", {"guest": "sh"})
        c.wait_note("progress")
        assert c.call("cancel", request_id=n)["cancelled"]
        try:
            c.wait(n)
            raise AssertionError("it went on")
        except Failure as f:
            assert f.code == -32009, f
        assert not c.call("cancel", request_id=n)["cancelled"]


def provers_of(pid):
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % name) as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(name))
        except (OSError, ValueError):
            pass
    return found


def test_prove_ends_with_its_client():
    c = Client()
    c.send("doctor.prove", {"guest": "sh"})
    c.wait_note("progress")
    children = provers_of(c.process.pid)
    assert children
    c.raw(b'{"jsonrpc":"2.0","method":"kill"}\n')  # the end of input alone waits for the answer
    c.out.close()
    assert c.process.wait(30) == 0
    end = time.monotonic() + 30
    while any(map(is_alive, children)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(is_alive, children))
