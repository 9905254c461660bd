// declared.mjs FOLDER - prints every public method and option in the type declarations of the SDKs that are installed in
// FOLDER, one per line: "Class.method", "Class.method static", "Interface.option", "function()".
import { createRequire } from 'node:module';
import path from 'node:path';

const folder = process.argv[2];
const ts = createRequire(path.join(folder, 'package.json'))('typescript');
const files = ['e2b/dist/index.d.ts', '@e2b/code-interpreter/dist/index.d.ts'].map((f) => path.join(folder, 'node_modules', f));
const program = ts.createProgram(files, { moduleResolution: ts.ModuleResolutionKind.NodeNext, module: ts.ModuleKind.NodeNext, skipLibCheck: true,
  target: ts.ScriptTarget.ES2022, types: [], baseUrl: folder });
const checker = program.getTypeChecker();
const found = new Set();
// What is generated from their OpenAPI files, and the settings of three hundred MCP servers of others.
const SKIP = new Set(['paths', 'components', 'McpServer', 'McpServerName', 'operations']);
const isOurs = (d) => files.includes(path.resolve(d.getSourceFile().fileName));
const isHidden = (d) => (ts.getCombinedModifierFlags(d) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0;
const plain = (name) => name.replace(/\$\d+$/, '');

/** The options in the type of a parameter, under the name of the interface that declares them. */
function options(type, method, depth = 0) {
  if (depth > 4 || type.flags & (ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike | ts.TypeFlags.BooleanLike)) return;
  if (type.isUnionOrIntersection()) {
    for (const t of type.types) options(t, method, depth + 1);
    return;
  }
  if (type.getCallSignatures().length || checker.isArrayType(type)) {
    for (const t of checker.isArrayType(type) ? checker.getTypeArguments(type) : []) options(t, method, depth + 1);
    return;
  }
  for (const p of type.getProperties()) {
    const d = p.declarations?.[0];
    if (!d || !isOurs(d) || !ts.isPropertySignature(d)) continue;
    const owner = d.parent;
    let name = ts.isInterfaceDeclaration(owner) ? owner.name.text : null;
    for (let n = owner; n && !name; n = n.parent) if (ts.isTypeAliasDeclaration(n)) name = n.name.text;
    name = name ?? `${method} options`;
    if (SKIP.has(plain(name))) continue;
    const id = `${plain(name)}.${p.name}`;
    if (found.has(id)) continue;
    found.add(id);
    options(checker.getTypeOfSymbolAtLocation(p, d), method, depth + 1);
  }
}

function signatures(d, method) {
  const symbol = checker.getSymbolAtLocation(d.name ?? d);
  const type = symbol ? checker.getTypeOfSymbolAtLocation(symbol, d) : null;
  for (const s of type?.getCallSignatures() ?? [])
    for (const p of s.parameters) options(checker.getTypeOfSymbolAtLocation(p, d), method);
}

function visitClass(d, name) {
  for (const m of d.members) {
    if (!m.name || isHidden(m) || ts.isConstructorDeclaration(m)) continue;
    const isStatic = (ts.getCombinedModifierFlags(m) & ts.ModifierFlags.Static) !== 0;
    const id = `${name}.${m.name.text}${isStatic ? ' static' : ''}`;
    found.add(id);
    if (ts.isMethodDeclaration(m) || ts.isMethodSignature(m)) signatures(m, `${name}.${m.name.text}`);
  }
}

for (const file of files) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(file));
  for (let s of checker.getExportsOfModule(module)) {
    if (s.flags & ts.SymbolFlags.Alias) s = checker.getAliasedSymbol(s);
    const d = s.declarations?.[0];
    const name = plain(s.name);
    if (!d || !isOurs(d) || SKIP.has(name)) continue;
    if (ts.isClassDeclaration(d)) {
      if (/Error$/.test(name)) found.add(`new ${name}()`);
      else visitClass(d, d.getSourceFile().fileName.includes('code-interpreter') && name === 'Sandbox' ? 'CodeInterpreter' : name);
      // What it has from a class that is not exported.
      const base = d.heritageClauses?.[0]?.types[0];
      const b = base && !/Error$/.test(name) ? checker.getTypeAtLocation(base).symbol?.declarations?.[0] : null;
      if (b && ts.isClassDeclaration(b) && isOurs(b) && !/Error$/.test(b.name.text)) visitClass(b, plain(b.name.text));
    } else if (ts.isFunctionDeclaration(d)) {
      found.add(`${name}()`);
      signatures(d, name);
    } else if (ts.isVariableDeclaration(d)) {
      found.add(name);
    }
  }
}
console.log([...found].sort().join('\n'));
