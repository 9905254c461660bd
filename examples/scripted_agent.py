#!/usr/bin/python3
"""What an agent does in one sandbox, as a script: it writes data, looks at it with a shell command, installs a package from a local
registry, analyses with pandas, fits a model in R on the same file, compiles and runs a C program, plots, survives a timeout with its
variables, and hands back a report.

work() is written for E2B's Python SDK. With --e2b it runs there (pip install e2b-code-interpreter, and an account); otherwise in
Cordon: PYTHONPATH=clients/python CORDON=build/cordon examples/scripted_agent.py"""
import base64
import io
import os
import sys
import tempfile
import zipfile

DATA = "x,y,group\n" + "".join(f"{i},{2 * i + (i % 3 - 1)},{'ab'[i % 2]}\n" for i in range(1, 31))
PROGRAM = r"""
#include <stdio.h>
int main(void)
{
	double x, y, sum = 0;
	char group;
	if (scanf("%*[^\n]") == EOF)
		return 1;
	while (scanf("%lf,%lf,%c", &x, &y, &group) == 3)
		sum += y;
	printf("%.0f\n", sum);
	return 0;
}
"""


def tiny_wheel(folder):
    """A registry: a directory with one wheel."""
    name = "tidy_report-1.0"
    files = {"tidy_report.py": "def line(name, value):\n    return '- %s: %s\\n' % (name, value)\n",
             f"{name}.dist-info/METADATA": "Metadata-Version: 2.1\nName: tidy-report\nVersion: 1.0\n",
             f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: example\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{name}.dist-info/RECORD"] = "".join(f"{n},,\n" for n in [*files, f"{name}.dist-info/RECORD"])
    with zipfile.ZipFile(os.path.join(folder, f"{name}-py3-none-any.whl"), "w") as z:
        for path, text in files.items():
            z.writestr(path, text)


def value(execution):
    if execution.error:
        raise SystemExit(f"{execution.error.name}: {execution.error.value}\n{execution.error.traceback}")
    return execution.text


def work(sandbox, install, timeout_error):
    """Everything in one sandbox. Returns the report and the plot."""
    sandbox.files.write("data.csv", DATA)
    seen = sandbox.commands.run("wc -l < data.csv && head -n 2 data.csv").stdout
    install(sandbox)
    value(sandbox.run_code("import pandas as pd, tidy_report\ndata = pd.read_csv('data.csv')\nmeans = data.groupby('group').y.mean()"))
    means = value(sandbox.run_code("'%.2f %.2f' % (means['a'], means['b'])"))
    slope = value(sandbox.run_code("m <- lm(y ~ x, read.csv('data.csv')); writeLines(format(coef(m)[['x']], digits = 4), 'slope.txt'); 'fitted'",
                                   language="r"))
    sandbox.files.write("sum.c", PROGRAM)
    total = sandbox.commands.run("gcc -O1 -o sum sum.c && ./sum < data.csv").stdout.strip()
    drawn = sandbox.run_code("import matplotlib.pyplot as plt\nplt.scatter(data.x, data.y)\nplt.show()")
    value(drawn)
    plot = next((r.png for r in drawn.results if r.png), None)
    try:
        sandbox.run_code("while True: pass", timeout=2)
        raise SystemExit("the endless loop has ended")
    except timeout_error:
        pass
    rows = value(sandbox.run_code("len(data)"))
    value(sandbox.run_code(f"""with open('report.md', 'w') as f:
    f.write('# Report\\n\\n')
    for name, what in (('lines', {seen.split()[0]!r}), ('means', {means!r}), ('slope', open('slope.txt').read().strip()),
                       ('sum', {total!r}), ('rows after a timeout', {rows!r})):
        f.write(tidy_report.line(name, what))"""))
    assert "fitted" in slope
    return sandbox.files.read("report.md"), plot


def in_cordon():
    from cordon.e2b import Sandbox, TimeoutException
    with tempfile.TemporaryDirectory() as registry:
        os.chmod(registry, 0o755)
        tiny_wheel(registry)
        policy = {"workspace_exec": True, "packages": {"pip": ["tidy-report"], "pip_index": [registry]}}
        with Sandbox.create(policy=policy) as sandbox:
            return work(sandbox, lambda s: s.packages.install(["tidy-report"]), TimeoutException)


def in_e2b():
    from e2b_code_interpreter import Sandbox
    from e2b import TimeoutException

    def install(sandbox):
        with tempfile.TemporaryDirectory() as registry:
            tiny_wheel(registry)
            (name,) = os.listdir(registry)
            with open(os.path.join(registry, name), "rb") as f:
                sandbox.files.write("registry/" + name, io.BytesIO(f.read()))
        sandbox.commands.run("pip install --no-index --find-links registry tidy-report")
    sandbox = Sandbox.create()
    try:
        return work(sandbox, install, TimeoutException)
    finally:
        sandbox.kill()


def main():
    report, plot = in_e2b() if "--e2b" in sys.argv else in_cordon()
    print(report, end="")
    print("plot: %d bytes of PNG" % len(base64.b64decode(plot or "")))


if __name__ == "__main__":
    main()
