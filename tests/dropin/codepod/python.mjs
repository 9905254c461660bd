// tests/dropin/codepod/python.mjs - codepod's python-shell-integration, subprocess and packages tests, and packages of extensions.
const gives = (command, want) => async ({ open, assert }) => {
  const r = await (await open()).run(command);
  assert.deepEqual([r.stdout.trim(), r.exitCode], [want, 0], r.stderr);
};
const python = (code, want) => gives(`python3 -c "${code}"`, want);
const VECDB = { name: "vecdb", description: "Search", command: ({ args, stdin }) => `found ${args.join("+")} ${stdin}`,
  pythonPackage: { version: "1.2.0", summary: "Vector database client", files: {
    "__init__.py": "from codepod_ext import call as _call\n\ndef search(q): return _call('vecdb', 'search', q)['stdout']\n", "core.py": "X = 5\n" } } };
const ONLY = { name: "analyzer", pythonPackage: { version: "2.0.0", summary: "Code analyzer", files: { "__init__.py": "VALUE = 7\n" } } };

export default {
  "runs python3 -c": python("print(1 + 2)", "3"),
  async "runs python3 script.py"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/home/user/hello.py", 'print("hello from python")');
    assert.equal((await sb.run("python3 /home/user/hello.py")).stdout, "hello from python\n");
  },
  "python in a pipeline (stdin)": gives('echo hello world | python3 -c "print(input().upper())"', "HELLO WORLD"),
  "python output piped to coreutils": gives(`python3 -c "print('banana'); print('apple')" | sort | head -1`, "apple"),
  async "python reads and writes VFS files"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/home/user/data.txt", "42");
    assert.equal((await sb.run(`python3 -c "open('out.txt', 'w').write(str(int(open('data.txt').read()) * 2))"; cat out.txt`)).stdout, "84");
  },
  async "exit codes of errors"({ open, assert }) {
    const sb = await open();
    assert.equal((await sb.run('python3 -c "1/0"')).exitCode, 1);
    assert.equal((await sb.run('python3 -c "import sys; sys.exit(3)"')).exitCode, 3);
    assert.notEqual((await sb.run('python3 -c "if"')).exitCode, 0);
  },
  "subprocess.run list form captures stdout":
    python("import subprocess; print(subprocess.run(['echo', 'hello'], capture_output=True, text=True).stdout.strip())", "hello"),
  "subprocess.run shell=True captures stdout":
    python("import subprocess; print(subprocess.run('echo world | cat', shell=True, capture_output=True, text=True).stdout.strip())", "world"),
  "subprocess.check_output returns bytes": python("import subprocess; print(subprocess.check_output(['echo', 'bytes']).decode().strip())", "bytes"),
  "subprocess.run non-zero exit code": python("import subprocess; print(subprocess.run(['false']).returncode)", "1"),
  "subprocess.run with stdin input":
    python("import subprocess; print(subprocess.run(['cat'], input='hello stdin', capture_output=True, text=True).stdout)", "hello stdin"),
  "os.popen works without explicit import subprocess": python("import os; print(os.popen('echo popen').read().strip())", "popen"),
  "subprocess.Popen communicate":
    python("import subprocess; p = subprocess.Popen(['echo', 'popen'], stdout=subprocess.PIPE, text=True); print(p.communicate()[0].strip())", "popen"),
  async "subprocess cannot run what the allowlist lacks"({ open, assert }) {
    const sb = await open({ security: { toolAllowlist: ["echo", "python3"] } });
    assert.notEqual((await sb.run(`python3 -c "import subprocess; subprocess.run(['grep', 'root', '/etc/passwd'], check=True)"`)).exitCode, 0);
  },
  async "Sandbox packages option: requests is installed by name"({ open, assert }) {
    const sb = await open({ packages: ["requests"] });
    assert.equal((await sb.run('python3 -c "import requests; print(requests.__version__)"')).exitCode, 0);
  },
  async "works with no packages option"({ open, assert }) {
    assert.equal((await (await open({ packages: [] })).run("echo hello")).stdout, "hello\n");
  },
  async "an extension's package is importable and calls its command"({ open, assert }) {
    const sb = await open({ extensions: [VECDB] });
    const r = await sb.run(`python3 -c "import vecdb, vecdb.core; print(vecdb.search('test'), vecdb.core.X)"`);
    assert.deepEqual([r.stdout, r.exitCode], ["found search+test  5\n", 0], r.stderr);
  },
  async "an extension may be only a package"({ open, assert }) {
    const r = await (await open({ extensions: [ONLY] })).run('python3 -c "import analyzer; print(analyzer.VALUE)"');
    assert.deepEqual([r.stdout, r.exitCode], ["7\n", 0], r.stderr);
  },
  async "packages are there in a fork and after a mount"({ open, assert }) {
    const sb = await open({ extensions: [ONLY] });
    const child = await sb.fork();
    const r = await child.run('python3 -c "import analyzer; print(analyzer.VALUE)"');
    await child.destroy();
    assert.equal(r.stdout, "7\n", r.stderr);
    await sb.mount("/mnt/x", { a: "b" });
    assert.equal((await sb.run('python3 -c "import analyzer; print(analyzer.VALUE)"')).stdout, "7\n");
  },
  async "pip list shows the package"({ open, assert }) {
    const r = await (await open({ extensions: [ONLY] })).run("pip list", { timeoutMs: 300000 });
    assert.match(r.stdout, /analyzer\s+2\.0\.0/, r.stderr);
  },
  async "pip show displays metadata"({ open, assert }) {
    const r = await (await open({ extensions: [ONLY] })).run("pip show analyzer", { timeoutMs: 300000 });
    for (const line of ["Name: analyzer", "Version: 2.0.0", "Summary: Code analyzer"]) assert.ok(r.stdout.includes(line), r.stdout + r.stderr);
  },
  async "the package is at /usr/lib/python"({ open, assert }) {
    const r = await (await open({ extensions: [ONLY] })).run('python3 -c "import analyzer; print(analyzer.__file__)"');
    assert.equal(r.stdout, "/usr/lib/python/analyzer/__init__.py\n");
  },
};
