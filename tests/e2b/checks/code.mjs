// code.mjs - the code interpreter: languages, contexts, streams, rich results.
import { assert, box, check, ci, create, e2b, rejects, until } from '../harness.mjs';

check(['CodeInterpreter.runCode', 'Execution.text', 'Execution.results', 'Execution.logs', 'Execution.error', 'Execution.executionCount', 'Execution.toJSON',
  'Result.text', 'Result.isMainResult', 'Result.raw', 'Result.toJSON', 'Result.formats', 'Result.extra'], async () => {
  const s = await create();
  const r = await s.runCode('x = 1\nprint("hi")\nx + 1');
  assert.deepEqual([r.text, r.logs, r.error, r.executionCount], ['2', { stdout: ['hi\n'], stderr: [] }, undefined, 1]);
  assert.deepEqual([r.results.length, r.results[0].text, r.results[0].isMainResult, r.results[0].raw.text], [1, '2', true, '2']);
  assert.deepEqual([r.results[0].formats(), r.results[0].extra], [[], {}]);
  assert.equal(JSON.parse(JSON.stringify(r)).results[0].text, '2');
  assert.equal((await s.runCode('x += 1; x')).text, '2');
  assert.equal((await s.runCode('"text"')).text, 'text');
  const quiet = await s.runCode('y = 3');
  assert.deepEqual([quiet.text, quiet.results, quiet.executionCount], [undefined, [], 4]);
  const empty = await s.runCode('');
  assert.deepEqual([empty.results, empty.error], [[], undefined]);
  assert.equal((await s.runCode('    z = 5\n    z * 2\n')).text, '10'); // indented, as in a notebook
  assert.equal((await s.runCode('!echo from-"shell"')).logs.stdout.join(''), 'from-shell\n');
  await s.kill();
});

check('new ExecutionError()', async () => {
  const s = await box();
  const { error } = await s.runCode('def f():\n    return 1 / 0\nf()');
  assert.deepEqual([error.name, error.value], ['ZeroDivisionError', 'division by zero']);
  assert.match(error.traceback, /line 2, in f[\s\S]*ZeroDivisionError: division by zero/);
  const syntax = (await s.runCode('def (')).error;
  assert.equal(syntax.name, 'SyntaxError');
  assert.match((await s.runCode('throw new TypeError("no")', { language: 'javascript' })).error.name, /TypeError/);
  assert.match((await s.runCode('stop("no")', { language: 'r' })).error.value, /no/);
  assert.ok((await s.runCode('false', { language: 'bash' })).error);
});

check('CodeInterpreter.runCode options.language', async () => {
  const s = await box();
  assert.equal((await s.runCode('const a = [1, 2]; console.log(a.length); a.map((v) => v * 2).join()', { language: 'javascript' })).text, '2,4');
  assert.equal((await s.runCode('a.length', { language: 'js' })).text, '2');
  assert.match((await s.runCode('x <- c(1, 2, 3); mean(x)', { language: 'r' })).text, /\[1\] 2/);
  assert.match((await s.runCode('sum(x)', { language: 'r' })).text, /6/);
  assert.deepEqual((await s.runCode('v=7; cd /tmp', { language: 'bash' })).logs.stdout, []);
  assert.equal((await s.runCode('echo $v $PWD', { language: 'bash' })).logs.stdout.join(''), '7 /tmp\n');
  assert.equal((await s.runCode('1 + 1', { language: 'python' })).text, '2');
  await rejects(s.runCode('class A {}', { language: 'java' }), Error, /501/);
  await rejects(s.runCode('1', { language: 'python', context: { id: 'x' } }), e2b.InvalidArgumentError);
});

check('+typescript', async () => {
  const s = await box();
  let r;
  try {
    r = await s.runCode('const n: number = 21; n * 2', { language: 'typescript' });
  } catch (e) {
    assert.match(e.message, /501/); // Node 22 strips the types; this one cannot
    return;
  }
  assert.equal(r.text, '42');
});

check(['RunCodeOpts.onStdout', 'RunCodeOpts.onStderr', 'RunCodeOpts.onResult', 'RunCodeOpts.onError', 'OutputMessage.line', 'OutputMessage.error',
  'OutputMessage.timestamp', 'OutputMessage.toString'], async () => {
  const s = await box();
  const out = [], err = [], results = [], errors = [];
  let early = false;
  const code = 'import time, sys\nprint(1, flush=True)\ntime.sleep(0.5)\nprint("ä", file=sys.stderr)\nfrom IPython.display import HTML\ndisplay(HTML("<b/>"))\n1/0';
  const promise = s.runCode(code, { onStdout: (m) => { out.push(m); early = results.length + errors.length === 0; }, onStderr: (m) => err.push(m),
    onResult: (r) => results.push(r), onError: (e) => errors.push(e) });
  await promise;
  assert.deepEqual([out[0].line, out[0].error, err[0].line, err[0].error], ['1\n', false, 'ä\n', true]);
  assert.ok(out[0].timestamp > 1e15 && early);
  assert.deepEqual([results.length, errors[0].name], [1, 'ZeroDivisionError']);
  const split = await s.runCode('import os, time\nb = "€".encode()\nos.write(1, b[:1]); time.sleep(0.2); os.write(1, b[1:]); None');
  assert.equal(split.logs.stdout.join(''), '€');
});

check('RunCodeOpts.envs', async () => {
  const s = await create({ envs: { A: 'global' } });
  for (const [language, code] of [['python', 'import os; os.environ.get("A", "none")'], ['js', 'process.env.A ?? "none"'], ['r', 'cat(Sys.getenv("A", "none"))'],
    ['bash', 'echo "${A-none}"']]) {
    const run = async (o) => { const r = await s.runCode(code, { language, ...o }); return r.text ?? r.logs.stdout.join('').trim(); };
    assert.equal(await run({ envs: { A: 'own' } }), 'own', language);
    assert.equal(await run(), 'global', language);
  }
  await s.kill();
});

check('RunCodeOpts.timeoutMs', async () => {
  const s = await create();
  await s.runCode('kept = 1');
  await rejects(s.runCode('import time; time.sleep(60)', { timeoutMs: 500 }), e2b.TimeoutError);
  assert.equal((await s.runCode('kept', { timeoutMs: 20_000 })).text, '1'); // the client left, so the code was interrupted
  await s.kill();
});
check('RunCodeOpts.requestTimeoutMs', async () => {
  const s = await box();
  assert.equal((await s.runCode('1', { requestTimeoutMs: 20_000 })).text, '1');
});

check(['CodeInterpreter.createCodeContext', 'CreateCodeContextOpts.cwd', 'CreateCodeContextOpts.language', 'CreateCodeContextOpts.requestTimeoutMs', 'Context.id',
  'Context.language', 'Context.cwd', 'CodeInterpreter.runCode options.context'], async () => {
  const s = await create();
  await s.files.makeDir('deep');
  const c = await s.createCodeContext({ cwd: '/home/user/deep', requestTimeoutMs: 20_000 });
  assert.deepEqual([c.language, c.cwd], ['python', '/home/user/deep']);
  assert.ok(c.id);
  await s.runCode('x = 1');
  assert.equal((await s.runCode('x', { context: c })).error.name, 'NameError');
  assert.equal((await s.runCode('import os; os.getcwd()', { context: c })).text, '/home/user/deep');
  const js = await s.createCodeContext({ language: 'javascript' });
  assert.equal(js.language, 'javascript');
  assert.equal((await s.runCode('6 * 7', { context: js })).text, '42');
  await rejects(s.runCode('1', { context: { id: 'unknown' } }), Error, /no context/);
  await rejects(s.createCodeContext({ language: 'java' }), Error, /501/);
  await s.kill();
});

check(['CodeInterpreter.listCodeContexts', 'CodeInterpreter.removeCodeContext', 'CodeInterpreter.restartCodeContext'], async () => {
  const s = await create();
  const languages = (await s.listCodeContexts()).map((c) => c.language);
  assert.ok(languages.includes('python') && languages.includes('javascript'));
  const c = await s.createCodeContext();
  const last = (await s.listCodeContexts()).at(-1);
  assert.deepEqual(last, c);
  await s.runCode('x = 1', { context: c });
  await s.restartCodeContext(c.id);
  const { error } = await s.runCode('x', { context: c });
  assert.deepEqual([error.name, error.value], ['NameError', "name 'x' is not defined"]);
  await s.removeCodeContext(c);
  assert.ok(!(await s.listCodeContexts()).some((k) => k.id === c.id));
  await rejects(s.runCode('1', { context: c }));
  await rejects(s.removeCodeContext(c.id));
  await s.kill();
});

check('+two executions wait for each other', async () => {
  const s = await box();
  const all = await Promise.all([1, 2, 3].map((i) => s.runCode(`import time; time.sleep(0.1); ${i}`)));
  assert.deepEqual(all.map((r) => r.text), ['1', '2', '3']);
});

check(['Result.html', 'Result.markdown', 'Result.svg', 'Result.latex', 'Result.jpeg', 'Result.json', 'Result.javascript', 'Result.pdf'], async () => {
  const s = await box();
  const of = async (name, value) => (await s.runCode(`class T:\n    def ${name}(self): return ${value}\nT()`)).results[0];
  assert.equal((await of('_repr_html_', '"<b>1</b>"')).html, '<b>1</b>');
  assert.equal((await of('_repr_markdown_', '"**1**"')).markdown, '**1**');
  assert.equal((await of('_repr_svg_', '"<svg/>"')).svg, '<svg/>');
  assert.equal((await of('_repr_latex_', '"$1$"')).latex, '$1$');
  assert.equal((await of('_repr_jpeg_', 'b"abc"')).jpeg, Buffer.from('abc').toString('base64'));
  assert.deepEqual((await of('_repr_json_', '{"a": [1]}')).json, { a: [1] });
  assert.equal((await of('_repr_javascript_', '"1"')).javascript, '1');
  assert.equal((await of('_repr_pdf_', 'b"%PDF"')).pdf, Buffer.from('%PDF').toString('base64'));
});

check('Result.data', async () => {
  const s = await box();
  const r = (await s.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", None]})')).results[0];
  assert.deepEqual(r.data, { a: [1, 2], b: ['x', null] });
  assert.match(r.html, /<table/);
  assert.match(r.text, /a\s+b/);
});

check('Result.png', async () => {
  const s = await box();
  const r = await s.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()');
  assert.equal(Buffer.from(r.results[0].png, 'base64').subarray(1, 4).toString(), 'PNG');
  assert.ok(r.results[0].text);
  const plot = await s.runCode('plot(1:3)', { language: 'r' });
  assert.equal(Buffer.from(plot.results[0].png, 'base64').subarray(1, 4).toString(), 'PNG');
});

const chart = async (code) => {
  const r = await (await box()).runCode(`import matplotlib.pyplot as plt\n${code}\nplt.show()`);
  assert.equal(r.error, undefined, r.error?.traceback);
  // docs/e2b.md says it: the picture is one result, and the chart the next.
  assert.deepEqual(r.results.map((x) => [!!x.png, !!x.chart]), [[true, false], [false, true]]);
  return r.results.find((x) => x.chart).chart;
};
check('Result.chart', async () => {
  const line = await chart('import datetime\nd = [datetime.date(2023, 9, 1 + i) for i in range(3)]\nplt.plot(d, [1, 2, 4], label="a")\nplt.xlabel("Time (s)")\nplt.title("T")');
  assert.deepEqual([line.type, line.title, line.x_label, line.x_unit, line.y_label, line.x_scale, line.y_scale], ['line', 'T', 'Time (s)', 's', null, 'datetime', 'linear']);
  assert.deepEqual(new Date(line.elements[0].points[0][0]), new Date('2023-09-01T00:00:00Z'));
  assert.deepEqual([line.elements[0].label, line.elements[0].points[2][1]], ['a', 4]);
  assert.ok(line.x_ticks.every((t) => typeof t === 'string') && line.y_ticks.every((t) => typeof t === 'number'));
  const words = await chart('plt.plot([1, 2], ["A", "B"])');
  assert.deepEqual([words.y_scale, words.elements[0].points], ['categorical', [[1, 'A'], [2, 'B']]]);
  const scatter = await chart('plt.scatter([1, 2], [3, 4], label="d")\nplt.yscale("log")');
  assert.deepEqual([scatter.type, scatter.y_scale, scatter.elements], ['scatter', 'log', [{ label: 'd', points: [[1, 3], [2, 4]] }]]);
  const bar = await chart('plt.bar(["A", "B"], [10, 20])');
  assert.deepEqual([bar.type, bar.elements.map((e) => [e.label, e.value])], ['bar', [['A', 10], ['B', 20]]]);
  const pie = await chart('plt.pie([90, 10], labels=["No", "Yes"])');
  assert.deepEqual([pie.type, pie.elements], ['pie', [{ label: 'No', angle: 324, radius: 1 }, { label: 'Yes', angle: 36, radius: 1 }]]);
  const boxes = await chart('fig, ax = plt.subplots()\nax.boxplot([[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87]], labels=["A", "B"])');
  assert.deepEqual([boxes.type, boxes.elements[1]], ['box_and_whisker',
    { label: 'B', min: 84, first_quartile: 84.75, median: 88, third_quartile: 90.5, max: 95, outliers: [76] }]);
  const two = await chart('fig, axs = plt.subplots(1, 2)\nfig.suptitle("S")\naxs[0].plot([1])\naxs[1].scatter([1], [2])');
  assert.deepEqual([two.type, two.title, two.elements.map((e) => e.type)], ['superchart', 'S', ['line', 'scatter']]);
  const none = await chart('fig, ax = plt.subplots()\nax.add_artist(plt.Circle((0, 0), 1))\nplt.title("C")');
  assert.deepEqual([none.type, none.title, none.elements], ['unknown', 'C', []]);
});

check('+the sandbox is killed while code runs', async () => {
  const s = await create();
  const running = s.runCode('import time\nprint("on", flush=True)\ntime.sleep(60)');
  running.catch(() => {});
  await s.commands.run('true');
  await s.kill();
  await rejects(running);
});

check(['E2B.Sandbox', 'E2B.Template', 'E2B.Volume', 'E2B.Secret'], async () => {
  const client = new ci.E2B({ apiKey: process.env.E2B_API_KEY, apiUrl: process.env.E2B_API_URL, sandboxUrl: process.env.E2B_SANDBOX_URL });
  const s = await client.Sandbox.create();
  assert.equal((await s.commands.run('echo 2')).stdout, '2\n');
  if (ci.E2B !== e2b.E2B) assert.equal((await s.runCode('1 + 1')).text, '2');
  await s.kill();
  for (const part of ['Template', 'Volume', 'Secret']) assert.ok(client[part] || part === 'Secret');
});
