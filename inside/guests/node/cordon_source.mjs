// cordon_source.mjs - tokenizes JavaScript: import statements become awaited calls (a script cannot have
// imports), and calls that a sandbox may restrict are found outside strings and comments.

const WORD = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy;
// After these a slash begins a regular expression, not a division.
const BEFORE_REGEX = new Set(['return', 'typeof', 'case', 'in', 'of', 'delete', 'void', 'throw', 'new', 'do', 'else',
  'instanceof', 'await', 'yield']);

/** Tokens as {type: word|string|punct|number|regex|template, text, start, end, line}; comments are left out. */
export function tokens(code) {
  const out = [];
  const templates = []; // depth of braces at each open ${
  let i = 0, braces = 0;
  const push = (type, start, end) => out.push({ type, text: code.slice(start, end), start, end });

  function template(start) { // from after ` or } to the next ${ or `
    for (; i < code.length; i++) {
      if (code[i] === '\\') i++;
      else if (code[i] === '`') { i++; break; }
      else if (code[i] === '$' && code[i + 1] === '{') { i += 2; templates.push(braces); break; }
    }
    push('template', start, i);
  }
  function regexAllowed() {
    const last = out[out.length - 1];
    if (!last) return true;
    if (last.type === 'word') return BEFORE_REGEX.has(last.text);
    return last.type === 'punct' ? !/^[)\]}]$/.test(last.text) : false;
  }
  while (i < code.length) {
    const c = code[i], start = i;
    if (/\s/.test(c)) i++;
    else if (c === '/' && code[i + 1] === '/' || c === '#' && code[i + 1] === '!' && i === 0) {
      while (i < code.length && code[i] !== '\n') i++;
    } else if (c === '/' && code[i + 1] === '*') {
      const end = code.indexOf('*/', i + 2);
      i = end < 0 ? code.length : end + 2;
    } else if (c === '"' || c === "'") {
      for (i++; i < code.length && code[i] !== c && code[i] !== '\n'; i++) if (code[i] === '\\') i++;
      push('string', start, ++i);
    } else if (c === '`') {
      i++;
      template(start);
    } else if (c === '}' && templates.length && templates[templates.length - 1] === braces) {
      templates.pop();
      i++;
      template(start);
    } else if (c === '/' && regexAllowed()) {
      let set = false;
      for (i++; i < code.length && (set || code[i] !== '/') && code[i] !== '\n'; i++) {
        if (code[i] === '\\') i++;
        else if (code[i] === '[') set = true;
        else if (code[i] === ']') set = false;
      }
      i++;
      push('regex', start, i);
    } else {
      WORD.lastIndex = i;
      const word = WORD.exec(code);
      if (word) {
        i += word[0].length;
        push('word', start, i);
      } else {
        if (/\d/.test(c)) while (i < code.length && /[\w.]/.test(code[i])) i++;
        else i++;
        if (c === '{') braces++;
        if (c === '}') braces--;
        push(/\d/.test(c) ? 'number' : 'punct', start, i);
      }
    }
  }
  return out;
}

/** {a as b, c} of an import, as a pattern. */
function pattern(list) {
  const names = [];
  for (let i = 0; i < list.length; i++) {
    if (list[i].text === ',') continue;
    const as = list[i + 1]?.text === 'as';
    names.push(as ? `${list[i].text}: ${list[i + 2].text}` : list[i].text);
    if (as) i += 2;
  }
  return names;
}

/** The text that stands for one import statement; t are its tokens after `import`. */
function declaration(t, call) {
  const from = t.findIndex((x) => x.type === 'word' && x.text === 'from');
  const target = t.find((x) => x.type === 'string').text;
  if (from < 0) return `await ${call}(${target})`;
  const head = t.slice(0, from);
  const open = head.findIndex((x) => x.text === '{');
  const star = head.findIndex((x) => x.text === '*');
  const plain = head[0].type === 'word' ? head[0].text : null;
  if (star >= 0) {
    const name = head[star + 2].text;
    return `const ${name} = await ${call}(${target})` + (plain ? `, ${plain} = ${name}.default` : '');
  }
  const names = open >= 0 ? pattern(head.slice(open + 1, head.findIndex((x) => x.text === '}'))) : [];
  if (plain) names.unshift(`default: ${plain}`);
  return `const { ${names.join(', ')} } = await ${call}(${target})`;
}

/** The code with import statements and import() turned into calls of `call`, line for line. */
export function withImports(code, call) {
  if (!/\b(import|export)\b/.test(code)) return code;
  const t = tokens(code);
  let out = '', done = 0;
  const replace = (start, end, text) => {
    const lines = code.slice(start, end).split('\n').length - 1;
    out += code.slice(done, start) + text + '\n'.repeat(lines);
    done = end;
  };
  for (let i = 0; i < t.length; i++) {
    if (t[i].type !== 'word' || t[i - 1]?.text === '.') continue;
    if (t[i].text === 'export' && (!t[i - 1] || /^[;}]$/.test(t[i - 1].text) ||
        code.slice(t[i - 1].end, t[i].start).includes('\n'))) {
      const last = t[i + 1]?.text === 'default' ? t[i + 1] : t[i];
      if (t[i + 1]?.text !== '{' && t[i + 1]?.text !== '*') replace(t[i].start, last.end, '');
      continue;
    }
    if (t[i].text !== 'import' || t[i + 1]?.text === ':' ) continue;
    const next = t[i + 1];
    if (next?.text === '(') {
      replace(t[i].start, t[i].end, call);
    } else if (next && next.text !== '.') {
      let end = i + 1;
      while (end < t.length && t[end].type !== 'string') end++;
      if (end === t.length) continue;
      const text = declaration(t.slice(i + 1, end + 1), call);
      if (/^(with|assert)$/.test(t[end + 1]?.text ?? '') && t[end + 2]?.text === '{')
        while (t[end].text !== '}') end++;
      replace(t[i].start, t[end].end, text);
      i = end;
    }
  }
  return out + code.slice(done);
}

const WATCHED = new Set(['eval', 'Function', 'require', 'fetch', 'WebSocket', 'process.kill', 'process.exit',
  'process.binding', 'process.dlopen', 'process.chdir', 'child_process.exec', 'child_process.execSync',
  'child_process.spawn', 'child_process.spawnSync', 'child_process.fork', 'child_process.execFile',
  'child_process.execFileSync', 'exec', 'execSync', 'spawn', 'spawnSync', 'execFile', 'execFileSync', 'fork',
  'net.connect', 'net.createConnection', 'net.createServer', 'http.request', 'http.get', 'https.request', 'https.get',
  'http.createServer', 'dgram.createSocket', 'vm.runInThisContext', 'vm.runInNewContext', 'fs.rmSync', 'fs.rm',
  'Worker', 'WebAssembly.instantiate', 'WebAssembly.compile']);
const HARMLESS = new Set(['fs', 'node:fs', 'path', 'node:path', 'util', 'node:util', 'assert', 'node:assert', 'crypto',
  'node:crypto', 'events', 'node:events', 'os', 'node:os', 'url', 'node:url', 'buffer', 'node:buffer', 'stream',
  'node:stream', 'readline', 'node:readline', 'timers', 'node:timers', 'zlib', 'node:zlib', 'fs/promises',
  'node:fs/promises', 'timers/promises', 'node:timers/promises', 'perf_hooks', 'node:perf_hooks']);

// Code whose text has none of these calls nothing of the above. That is enough for most code.
const WORDS = new RegExp([...new Set([...WATCHED].map((n) => n.slice(n.lastIndexOf('.') + 1)))].join('|') + '|\\\\u');

/** Sentences about calls that a sandbox may restrict. */
export function advice(code) {
  if (!WORDS.test(code)) return [];
  const t = tokens(code), found = [];
  for (let i = 0; i + 1 < t.length; i++) {
    if (t[i].type !== 'word' || t[i + 1].text !== '(' || t[i - 1]?.text === 'function') continue;
    let name = t[i].text, k = i;
    while (t[k - 1]?.text === '.' && t[k - 2]?.type === 'word') {
      k -= 2;
      name = t[k].text + '.' + name;
    }
    if (t[k - 1]?.text === '.') continue; // a method of something that is not a plain name
    if (name === 'require' && HARMLESS.has(t[i + 2]?.text.slice(1, -1))) continue;
    if (WATCHED.has(name) && !found.includes(name)) found.push(name);
  }
  return found.map((n) => `Code contains call to \`${n}()\` which may be restricted by the sandbox`);
}
