// cordon_inspect.mjs - what a prompt asks about code that it does not run yet: whether it is complete, and which
// names continue its last word.
import { types } from 'node:util';
import vm from 'node:vm';
import { tokens } from './cordon_source.mjs';

const MATCHES = 200;
const OPEN = 'async () => {';

/** What V8 says about the text, {message, line, column}, or null. Nothing runs. */
function syntaxError(text) {
  try {
    new vm.Script(text, { filename: 'code' });
    return null;
  } catch (e) {
    const [place, , mark] = e.stack.split('\n');
    return { message: e.message, line: Number(/^code:(\d+)$/.exec(place)?.[1] ?? 0), column: mark.indexOf('^') };
  }
}

/** Whether more brackets are closed than were opened: they would close the function around the code. */
function closesTooMuch(found) {
  let depth = 0;
  return found.some((t) => {
    if (t.type === 'punct') depth += '([{'.includes(t.text) ? 1 : ')]}'.includes(t.text) ? -1 : 0;
    return depth < 0;
  });
}

/** complete, incomplete (more lines may make it valid) or invalid. */
export function completeness(code) {
  const found = tokens(code);
  if (!syntaxError(code)) return 'complete';
  if (closesTooMuch(found)) return 'invalid';
  if (!syntaxError(`(${OPEN}${code}\n})`)) return 'complete'; // with await at the top level
  // Where the code is right so far, V8 misses the rest only at the end.
  const e = syntaxError(`(${OPEN}${code}\n`);
  if (e.message === 'Unexpected end of input') return 'incomplete';
  if (e.message === 'Invalid or unexpected token') return e.column < 0 ? 'incomplete' : 'invalid'; // a comment, "…\
  if (!/^missing \)|^Missing catch/.test(e.message)) return 'invalid';
  const lines = code.split('\n');
  const at = lines.slice(0, e.line - 1).join('\n').length + (e.line > 1) + e.column - (e.line === 1 ? OPEN.length + 1 : 0);
  return at >= (found.at(-1)?.start ?? 0) ? 'incomplete' : 'invalid';
}

/** All names of an object and its prototypes. */
function namesOf(value) {
  const names = new Set();
  if (value === null || value === undefined) return names;
  for (let o = Object(value), depth = 0; o && depth < 10 && !types.isProxy(o); o = Object.getPrototypeOf(o), depth++)
    for (const n of Object.getOwnPropertyNames(o)) names.add(n);
  return names;
}

async function scopeNames(post) {
  await post('Runtime.enable');
  const { names } = await post('Runtime.globalLexicalScopeNames', {});
  await post('Runtime.disable');
  return new Set([...names ?? [], ...namesOf(globalThis)]);
}

/** {token, matches}: the word at the end of the code, and what it may become. */
export async function completions(code, post, unwrap) {
  const token = /[\p{ID_Start}$_][\p{ID_Continue}$.]*$/u.exec(code)?.[0] ?? '';
  const dot = token.lastIndexOf('.'), head = token.slice(0, dot + 1), tail = token.slice(dot + 1);
  if (!token) return { token, matches: [] };
  let names = new Set();
  if (dot < 0) {
    names = await scopeNames(post);
  } else {
    const r = await post('Runtime.evaluate', { expression: token.slice(0, dot), silent: true, throwOnSideEffect: true });
    if (r.result && !r.exceptionDetails) names = namesOf(await unwrap(r.result));
  }
  const fits = (n) => n.startsWith(tail) && n !== tail && (tail || !n.startsWith('__')) && /^[\p{ID_Continue}$]+$/u.test(n);
  return { token, matches: [...names].filter(fits).sort().slice(0, MATCHES).map((n) => head + n) };
}
