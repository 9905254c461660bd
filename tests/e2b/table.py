"""The table of docs/e2b.md: nothing in the SDKs' type declarations is missing in it, and what it says works has a check."""
import os
import re
import subprocess

import sdks

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "e2b.md")


def declared(folder):
    """Every public method and option of the SDKs in this folder."""
    r = subprocess.run([sdks.node(), os.path.join(HERE, "declared.mjs"), folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert r.returncode == 0 and r.stdout, r.stderr[-2000:]
    return r.stdout.split("\n")[:-1]


def checks():
    """What tests/e2b/checks calls."""
    folder = sdks.find("current")
    r = subprocess.run([sdks.node(), os.path.join(HERE, "suite.mjs")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                       env=dict(os.environ, E2B_SDK=folder, E2B_LIST="1", E2B_API_URL="http://127.0.0.1:1", E2B_SANDBOX_URL="http://127.0.0.1:1",
                                E2B_API_KEY="e2b_00"))
    assert r.returncode == 0, r.stderr[-2000:]
    return set(r.stdout.split("\n")[:-1])


def rows():
    """{name: (state, reason)} of the page's table."""
    found = {}
    with open(PAGE, encoding="utf-8") as f:
        for line in f:
            m = re.match(r"^\| (`.*`) \| (\w+) \| (.*) \|$", line)
            for name in re.findall(r"`([^`]+)`", m.group(1)) if m else ():
                assert name not in found, "%s is in the table twice" % name
                found[name] = (m.group(2), m.group(3))
    return found


def test_nothing_is_missing_and_nothing_invented():
    want, have = set(), set(rows())
    for version in sdks.VERSIONS:
        want |= set(declared(sdks.find(version)))
    assert want == have, "not in docs/e2b.md: %s; not in the SDKs: %s" % (sorted(want - have), sorted(have - want))


def test_what_works_is_checked_and_the_rest_has_a_reason():
    called = checks()
    for name, (state, reason) in rows().items():
        assert state in ("yes", "501", "client"), (name, state)
        if state == "client":
            assert len(reason.split()) >= 3, name
        else:
            assert name in called, "%s has no check in tests/e2b/checks" % name


def test_every_check_is_in_the_table():
    extra = {name for name in checks() if not name.startswith("+")} - set(rows())
    assert not extra, extra
