"""cordon serve: the state folder has one server at a time, and a name that is used again brings nothing back."""
import json
import os
import sqlite3
import tempfile

from serving import Server
from test_database import sql, state_folder
from test_keys import cli


def test_two_servers_on_one_folder():
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        state = os.path.join(folder, "state")
        with Server("--park", "1ms", state=state) as one:
            c = one.client()
            s = c.open()
            while s not in os.listdir(os.path.join(state, "parked")):
                pass
            # Files of the first that are not in the database yet would be orphans to the second.
            half = os.path.join(state, "parked", "sess_half")
            open(half, "w").close()
            with Server(state=state, wait=False) as second:
                assert second.p.stdout.readline() == "", "it listens"
                assert second.p.wait(60) != 0
            assert second.stderr == ("cordon: serve: another server (process %d) uses the directory '%s': stop it first, "
                                     "or name another one with --state\n" % (one.p.pid, state)), second.stderr
            assert os.path.exists(half)
            assert c.execute(s, "6 * 7")["result"] == 42
            one.p.kill()
            one.p.wait()
        with Server(state=state) as two:
            assert not os.path.exists(half)
            assert two.client().execute(two.client().open(), "1")["result"] == 1
        with Server(state=state) as three:
            assert three.client().call("GET", "/v1/version")


def begin(c):
    """What a key can own."""
    s = c.open()
    c.execute(s, "'secret of the first'")
    named = c.open(workspace="w")
    c.call("PUT", "/v1/sessions/%s/files?path=f" % named, b"secret")
    c.call("DELETE", "/v1/sessions/" + named)
    status, _, body = c.raw("POST", "/sandboxes", {"templateID": "base"})
    assert status == 201, body
    return json.loads(body)["sandboxID"]


def owns_nothing(c, sandbox):
    assert c.call("GET", "/v1/audit") == {"events": []}
    assert c.call("GET", "/v1/audit/verification")["lines"] == 0
    assert c.call("GET", "/v1/sessions") == {"sessions": []}
    assert c.raw("GET", "/sandboxes/" + sandbox)[0] == 404
    named = c.open(workspace="w")
    assert c.raw("GET", "/v1/sessions/%s/files?path=f" % named)[0] == 404
    c.call("DELETE", "/v1/sessions/" + named)
    assert {e["session_id"] for e in c.call("GET", "/v1/audit")["events"]} == {named}


def test_a_name_that_is_used_again():
    with state_folder() as state:
        audit = os.path.join(state, "audit")
        with Server(state=state) as one:
            admin = one.client()
            sandbox = begin(one.client(admin.call("POST", "/v1/keys", {"name": "a"})["key"]))
            first = open(os.path.join(audit, "a.jsonl")).read()
            assert "secret of the first" in first
            # At once, while the first one's sessions end; and again, after the server has ended.
            admin.call("DELETE", "/v1/keys/a")
            c = one.client(admin.call("POST", "/v1/keys", {"name": "a"})["key"])
            owns_nothing(c, sandbox)
            sandbox = begin(c)
        assert len(os.listdir(os.path.join(state, "parked"))) == 1
        cli("revoke", "a", state=state)
        third = cli("add", "a", state=state)
        with Server(state=state) as one:
            assert os.listdir(os.path.join(state, "parked")) == []
            owns_nothing(one.client(third), sandbox)
            s = one.client(third).open()
        with Server(state=state) as one:
            assert one.client(third).call("GET", "/v1/sessions") == {"sessions": [s]}
            # The records of the others are still there, for the administrator.
            assert {"a.jsonl", "a~1.jsonl", "a~2.jsonl"} <= set(os.listdir(audit))
            assert open(os.path.join(audit, "a.jsonl")).read().startswith(first)


def test_a_database_of_an_older_version():
    with state_folder() as state:
        key = cli("add", "a", state=state)
        sql(state, "ALTER TABLE keys DROP COLUMN generation")
        try:
            sql(state, "SELECT generation FROM keys")
            assert False, "the column is still there"
        except sqlite3.OperationalError:
            pass
        with Server(state=state) as one:
            assert one.client(key).call("GET", "/v1/sessions") == {"sessions": []}
            one.client().call("DELETE", "/v1/keys/a")
            assert one.client(one.client().call("POST", "/v1/keys", {"name": "a"})["key"]).open()
