"""cordon serve: a database that cannot be read is not told as a wrong key, a missing session or an orphaned file."""
import contextlib
import json
import os
import sqlite3
import tempfile

from driver import is_alive
from serving import Server, refused
from test_keys import cli


@contextlib.contextmanager
def state_folder():
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        yield os.path.join(folder, "state")


def sql(state, *statements):
    """As another program: the server sees it at its next look."""
    db = sqlite3.connect(os.path.join(state, "serve.db"), isolation_level=None, timeout=60)
    try:
        return [db.execute(s).fetchall() for s in statements][-1]
    finally:
        db.close()


@contextlib.contextmanager
def broken(state, table):
    sql(state, "ALTER TABLE %s RENAME TO away" % table)
    try:
        yield
    finally:
        sql(state, "ALTER TABLE away RENAME TO %s" % table)


def lists(c, method="GET", path="/v1/sessions"):
    return c.raw(method, path)[0]


def test_a_failed_look_up_is_not_a_wrong_key():
    with state_folder() as state:
        alice, bob = cli("add", "alice", state=state), cli("add", "bob", state=state)
        with Server("--log", state=state) as one:
            a, b, stranger, admin = one.client(alice), one.client(bob), one.client("cordon_" + "0" * 48), one.client()
            assert (lists(a), lists(b), lists(stranger), lists(admin)) == (200, 200, 401, 200)
            pid = a.call("GET", "/v1/sessions/" + a.open())["pid"]
            with broken(state, "keys"):
                for c in (a, b, stranger):
                    p = refused(503, c.call, "GET", "/v1/sessions")
                    assert p.code == "os" and "looked up" in p.body["detail"] and p.body["remedy"], p.body
                    status, headers, _ = c.raw("GET", "/v1/sessions")
                    assert headers["Retry-After"] and "WWW-Authenticate" not in headers
                    assert lists(c, path="/sandboxes") == lists(c, "POST", "/mcp") == lists(c, path="/v1/rpc") == 503
                assert lists(one.client(""), path="/healthz") == lists(admin) == 200  # neither needs the database
                sql(state, "UPDATE away SET revoked=1 WHERE name='bob'")  # as if it were written meanwhile
                assert lists(b) == 503
            # That they had changed was seen while they could not be read.
            assert (lists(a), lists(b), lists(stranger)) == (200, 401, 401)
            assert is_alive(pid), "a session ended because its key could not be looked up"
        told = [json.loads(line) for line in one.stderr.splitlines()]
        assert any(t["event"] == "failure" and "no such table" in t["detail"] for t in told), one.stderr[-2000:]
        assert any(t["event"] == "request" and t["status"] == 503 for t in told)


def test_a_tenant_that_cannot_be_made_is_not_a_wrong_key():
    with state_folder() as state:
        key = cli("add", "alice", state=state)
        with Server(state=state) as one:
            s = one.client(key).open()
        with Server(state=state) as one:
            c, admin = one.client(key), one.client()
            with broken(state, "parked"):
                assert (lists(c), lists(admin)) == (503, 503)
            assert c.call("GET", "/v1/sessions") == {"sessions": [s]}
            assert c.execute(s, "6 * 7")["result"] == 42


def test_what_a_revoked_key_parked_goes_when_the_database_is_back():
    with state_folder() as state:
        key = cli("add", "alice", state=state)
        with Server(state=state) as one:
            one.client(key).open()
        with Server(state=state) as one:
            assert len(one.client(key).call("GET", "/v1/sessions")["sessions"]) == 1
            with broken(state, "parked"):
                sql(state, "UPDATE keys SET revoked=1 WHERE name='alice'")
                assert lists(one.client(key)) == 401
            while sql(state, "SELECT * FROM parked") or os.listdir(os.path.join(state, "parked")):
                assert one.p.poll() is None


def test_an_entry_without_a_file_is_none():
    with state_folder() as state:
        with Server(state=state) as one:
            gone, there = one.client().open(), one.client().open()
        os.unlink(os.path.join(state, "parked", gone))
        with Server(state=state) as one:
            c = one.client()
            assert c.call("GET", "/v1/sessions") == {"sessions": [there]}
            refused(404, c.execute, gone, "1")
            assert sql(state, "SELECT id FROM parked") == [(there,)]


def test_a_locked_database_keeps_what_is_parked():
    """Another program writes for long: keys are read all the same, and what cannot be written stays as it was."""
    with state_folder() as state:
        key = cli("add", "alice", state=state)
        with Server(state=state) as one:
            c = one.client(key)
            s = c.open()
            db = sqlite3.connect(os.path.join(state, "serve.db"), isolation_level=None, timeout=60)
            db.execute("BEGIN EXCLUSIVE")
            assert c.execute(s, "6 * 7")["result"] == 42
            p = refused(500, one.client().call, "POST", "/v1/keys", {"name": "bob"})
            assert "locked" in p.body["detail"], p.body
            db.execute("ROLLBACK")
            db.close()
            assert one.client().call("POST", "/v1/keys", {"name": "bob"})["key"]
        with Server(state=state) as one:
            assert one.client(key).call("GET", "/v1/sessions") == {"sessions": [s]}
