// inside/pod/image/module/translate.js - a WASI program becomes an object that cordon-pod can map.
// usage: node translate.js IN.wasm OUT   (in the directory of this file, inside a wall)
// The last line of standard output is "ok IMPORTS", or "refused REASON"; a reason is for people.
"use strict";
const fs = require("fs");
const { spawn, spawnSync } = require("child_process");

const MODULE = "wasi_snapshot_preview1";
const LIMITS = { sections: 64, imports: 1000, types: 100000, exports: 100000, pages: 65536 };
const SIMD = "it uses SIMD (v128), which the pod does not translate: compile without -msimd128";
const THREADS = "it uses threads (shared memory or atomics), which the pod does not have";

class Refusal extends Error {}
function refuse(reason) {
  throw new Refusal(reason);
}

class Reader {
  constructor(bytes, at, end) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }
  byte() {
    if (this.at >= this.end) refuse("it is truncated");
    return this.bytes[this.at++];
  }
  number() {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const b = this.byte();
      value += (b & 127) * 2 ** shift;
      if (b < 128) {
        if (value > 0xffffffff) refuse("a number in it is too large");
        return value;
      }
    }
    return refuse("a number in it is too long");
  }
  count(what) {
    const n = this.number();
    if (n > LIMITS[what]) refuse(`it has too many ${what} (${n})`);
    return n;
  }
  slice(n) {
    if (n > this.end - this.at) refuse("it is truncated");
    const part = new Reader(this.bytes, this.at, this.at + n);
    this.at += n;
    return part;
  }
  name() {
    const part = this.slice(this.number());
    return part.bytes.subarray(part.at, part.end).toString("utf8");
  }
}

// What could steer a terminal is shown as a dot.
function shown(name) {
  const plain = name.replace(/[^ -~]/g, ".");
  return plain.length > 60 ? plain.slice(0, 57) + "..." : plain;
}

const LETTER = { 0x7f: "i", 0x7e: "I", 0x7d: "f", 0x7c: "F" };

function letter(type) {
  if (type === 0x7b) refuse(SIMD);
  return LETTER[type] || "?";
}

function readTypes(r) {
  const types = [];
  for (let n = r.count("types"); n > 0; n--) {
    if (r.byte() !== 0x60) refuse("it has types that are no functions (GC), which the pod does not translate");
    const type = { params: "", results: "" };
    for (let k = r.number(); k > 0; k--) type.params += letter(r.byte());
    for (let k = r.number(); k > 0; k--) type.results += letter(r.byte());
    types.push(type);
  }
  return types;
}

function readLimits(r) {
  const flags = r.byte();
  if (flags & 2) refuse(THREADS);
  if (flags & 4) refuse("it uses a 64-bit memory, which the pod does not have");
  if (flags > 7) refuse("it has a memory of an unknown kind");
  const min = r.number();
  if (min > LIMITS.pages) refuse("it wants a larger memory than there is");
}

function readMemories(r) {
  const n = r.number();
  if (n === 1) readLimits(r);
  return n;
}

function readImport(r, types, known) {
  const module = r.name();
  const field = r.name();
  const kind = r.byte();
  if (kind !== 0) refuse(`it imports ${shown(module)}.${shown(field)}, which is no function`);
  const type = types[r.number()];
  if (module !== MODULE || !known.has(field))
    refuse(`it imports ${shown(module)}.${shown(field)}, which is not in WASI preview 1`);
  const wanted = known.get(field);
  const results = field === "proc_exit" ? "" : "i";
  if (!type || type.params !== wanted.params || type.results !== results)
    refuse(`it imports ${field} with another type than WASI preview 1 has`);
  return { field, params: wanted.params, results, index: wanted.index };
}

function readExports(r) {
  const found = new Map();
  for (let n = r.count("exports"); n > 0; n--) {
    const name = r.name();
    found.set(name, r.byte());
    r.number();
  }
  return found;
}

function checkExports(exports, memories) {
  if (exports.get("_start") !== 0)
    refuse("it has no _start: it is a library or a reactor, not a command");
  if (exports.get("memory") !== 2) refuse("it does not export its memory");
  if (memories !== 1) refuse("it must have one memory of its own");
}

// Sections come in an order of their own; 0 is anywhere, 12 and 13 sit between others.
function checkModule(bytes, known) {
  if (bytes.length < 8) refuse(bytes.length ? "it is truncated" : "it is empty");
  if (bytes.readUInt32LE(0) !== 0x6d736100) refuse("it is not WebAssembly");
  const version = bytes.readUInt32LE(4);
  if (version === 0x1000d) refuse("it is a component (preview 2): only modules of preview 1 are taken");
  if (version !== 1) refuse(`it is WebAssembly of version ${version}; only version 1 is known`);
  const all = new Reader(bytes, 8, bytes.length);
  let types = [], imports = [], exports = new Map(), memories = 0, sections = 0;
  while (all.at < all.end) {
    if (++sections > LIMITS.sections) refuse("it has too many sections");
    const id = all.byte();
    const r = all.slice(all.number());
    if (id > 13) refuse(`it has a section of an unknown kind (${id})`);
    if (id === 1) types = readTypes(r);
    if (id === 2) for (let n = r.count("imports"); n > 0; n--) imports.push(readImport(r, types, known));
    if (id === 5) memories = readMemories(r);
    if (id === 7) exports = readExports(r);
    if (id === 13) refuse("it uses exceptions, which the pod translates only for its own programs");
  }
  checkExports(exports, memories);
  return imports;
}

// The functions of inside/pod/runtime/wasi_list.h, by their order.
function readList() {
  const known = new Map();
  const text = fs.readFileSync("wasi_list.h", "latin1");
  for (const m of text.matchAll(/^WASI\((\w+), "(\w*)"\)/gm)) known.set(m[1], { params: m[2], index: known.size });
  return known;
}

function writeImports(imports) {
  const seen = new Set();
  let text = `#define HAS_IMPORTS ${imports.length ? 1 : 0}\n#ifdef OBJECT_IMPORTS\n`;
  for (const { field, params, results, index } of imports) {
    if (seen.has(field)) continue;
    seen.add(field);
    const c = [...params].map((t, i) => `${t === "I" ? "u64" : "u32"} a${i}`);
    const values = [...params].map((t, i) => `a${i}`).join(", ") || "0";
    text += `${results ? "u32" : "void"} w2c_wasi__snapshot__preview1_${field}(struct w2c_wasi__snapshot__preview1 *p`;
    text += `${c.map((x) => ", " + x).join("")})\n{\n\tconst uint64_t a[WASI_ARGS] = { ${values} };\n\n`;
    text += `\t${results ? "return " : ""}host->wasi((void *)p, ${index}, a);\n}\n`;
  }
  fs.writeFileSync("imports.h", text + "#endif\n");
}

// What the translator says about what it does not know, in our words.
function explain(text) {
  const plain = text.replace(/\x1b\[[0-9;]*m/g, "");
  const line = (plain.match(/error: (.*)/) || ["", "the translator gives no reason"])[1];
  if (/0xfd|v128|simd/i.test(line)) return SIMD;
  if (/0xfe|shared|atomic/i.test(line)) return THREADS;
  if (/0x0?(6|7|8|9|18|19|1f)\b|exception/i.test(line)) return "it uses exceptions, which the pod translates only for its own programs";
  return `it is not valid: ${shown(line)}`;
}

function translate(input, size) {
  const parts = Math.min(24, Math.floor(size / 250000) + 1);
  const r = spawnSync(process.execPath, ["--stack-size=7000", "wasm2c", "--disable-simd", "--no-debug-names",
    "-n", "module", `--num-outputs=${parts}`, input, "-o", "translated.c"], { encoding: "latin1", maxBuffer: 1 << 20 });
  if (r.status !== 0) refuse(explain(String(r.stdout) + String(r.stderr)));
  return fs.readdirSync(".").filter((f) => /^translated(_\d+)?\.c$/.test(f));
}

// A module's tables are read-only when it starts to run (instance.c), so that its code cannot choose what it calls.
// Else a write would end it with a segmentation fault, without a word why. Elements that the module itself sets at its
// start are in init_tables().
function checkTables(file) {
  const text = fs.readFileSync(file, "latin1");
  if (/\bwasm_rt_allocate_externref_table\(&instance/.test(text)) refuse("it has a table of externref, which the pod does not have");
  const code = text.replace(/^static void init_tables\(.*?^}/ms, "");
  const change = code.match(/\b(?:\w+ref_table_(set|fill|copy|init)|wasm_rt_(grow)_\w+ref_table)\(&instance/);
  if (change) refuse(`it changes a table while it runs (table.${change[1] || change[2]}), and the pod's tables are read-only`);
}

// Data as bytes beside the C: gcc takes minutes over megabytes of initialisers.
function moveData(file) {
  const data = /(?:static )?const u8 (data_segment_data_\w+)\[\] = \{([^}]*)\};/g;
  const text = fs.readFileSync(file, "latin1");
  const moved = text.replace(data, (all, name, body) => {
    fs.writeFileSync(`${name}.bin`, Buffer.from((body.match(/0x[0-9a-f]+/g) || []).map(Number)));
    return `extern const u8 ${name}[];\n__asm__(".pushsection .rodata\\n.balign 16\\n.globl ${name}\\n` +
      `.hidden ${name}\\n${name}:\\n.incbin \\"${name}.bin\\"\\n.popsection\\n");`;
  });
  if (moved !== text) fs.writeFileSync(file, moved);
}

const FLAGS = ["-std=gnu17", "-O2", "-g0", "-w", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-fno-builtin",
  "-fno-strict-aliasing", "-fno-optimize-sibling-calls", "-frounding-math", "-fno-stack-protector",
  "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-I."];

function run(program, args) {
  return new Promise((done) => {
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
    let text = "";
    child.stderr.on("data", (d) => (text = (text + d.toString("latin1")).slice(-4000)));
    child.on("error", (e) => done({ status: 127, text: e.message }));
    child.on("close", (status, signal) => done({ status: signal ? 137 : status, text }));
  });
}

function failed(what, r) {
  const missing = r.text.match(/undefined reference to [`'](\w+)'/);
  if (missing) refuse(`it uses ${missing[1]}, which the pod does not have`);
  const line = (r.text.match(/error: (.*)/) || ["", ""])[1];
  refuse(r.status === 137 ? `${what} was killed: it is too large` : `${what} failed (${r.status}): ${shown(line)}`);
}

async function compile(files, out) {
  const objects = [];
  for (const file of [...files, "object.c"]) {
    const r = await run("gcc", [...FLAGS, "-c", file, "-o", `${file}.o`]);
    if (r.status !== 0) failed("gcc", r);
    objects.push(`${file}.o`);
  }
  const r = await run("gcc", ["-shared", "-nostdlib", "-Wl,-z,now,-z,relro,-z,defs,-z,noexecstack,-z,max-page-size=4096",
    "-Wl,-Bsymbolic,--hash-style=sysv,--build-id=none,-e,module_head", "-s", "-o", out, ...objects,
    "-lgcc"]); // what the compiler calls for an instruction that the machine may lack: a count of bits
  if (r.status !== 0) failed("the linker", r);
}

async function main() {
  const [input, out] = process.argv.slice(2);
  const bytes = fs.readFileSync(input);
  const imports = checkModule(bytes, readList());
  writeImports(imports);
  const files = translate(input, bytes.length);
  files.forEach(checkTables);
  files.forEach(moveData);
  await compile(files, out);
  console.log(`ok ${[...new Set(imports.map((i) => i.field))].sort().join(" ")}`);
}

main().catch((e) => {
  console.log(`refused ${e instanceof Refusal ? e.message : `the translator failed: ${shown(String(e.message))}`}`);
  process.exitCode = 3;
});
