# lib/gate.py - checks what wasm2c wrote and moves its data segments out of the C.
"""usage: gate.py DIR MODULE

The generated interface is no stable ABI, and an older wasm2c lost the unwind target where a
branch leaves a try body. So: every goto out of a try body restores that target, every label
exists, and what lives across setjmp is volatile. Then data segments become .incbin blobs,
because gcc takes minutes over megabytes of initialisers.
"""
import glob
import os
import re
import sys

START = re.compile(r"^(static )?(inline )?(void|u32|u64|f32|f64|struct \w+)\*? \w+\(")
TRY = re.compile(r"if \(!wasm_rt_try\(var_(T\d+)_unwind_target\)")
LABEL = re.compile(r"\b(var_[A-Za-z]\w*):")
GOTO = re.compile(r"goto (\w+);")
LOCAL = re.compile(r"^  (u32|u64|f32|f64) (volatile )?var_[lp]")
# In a module of several parts they are not static.
DATA = re.compile(r"(?:static )?const u8 (data_segment_data_\w+)\[\] = \{([^}]*)\};")


def functions(lines):
    starts = [k for k, l in enumerate(lines) if START.match(l) and not l.endswith(";")]
    for a, b in zip(starts, starts[1:] + [len(lines)]):
        end = next((j for j in range(a, b) if lines[j] == "}"), b)
        yield a, end


def try_bodies(lines, a, end):
    for k in range(a, end):
        found = TRY.search(lines[k])
        if found:
            indent = re.match(r" *", lines[k]).group(0)
            e = next(j for j in range(k + 1, end) if lines[j].startswith(indent + "}"))
            yield k, e, found.group(1), set(LABEL.findall("\n".join(lines[k:e])))


def check_gotos(lines, a, end, bodies):
    for k in range(a, end):
        for goto in GOTO.finditer(lines[k]):
            left = [r for r in bodies if r[0] < k < r[1] and goto.group(1) not in r[3]]
            if not left:
                continue
            want = "wasm_rt_set_unwind_target(var_%s_outer_target);" % min(left)[2]
            before = (lines[k - 1].strip() + " " + lines[k][: goto.start()].strip()).strip()
            if not before.endswith(want):
                yield k + 1, "a branch leaves a try body without restoring its target"


def check(path, text):
    lines = text.split("\n")
    seen = 0
    for a, end in functions(lines):
        body = "\n".join(lines[a:end])
        missing = set(GOTO.findall(body)) - set(re.findall(r"\b(var_\w+):", body))
        for label in missing:
            yield path, a + 1, "no label " + label
        bodies = list(try_bodies(lines, a, end))
        seen += len(bodies)
        if not bodies:
            continue
        for k in range(a, end):
            local = LOCAL.match(lines[k])
            if local and not local.group(2):
                yield path, k + 1, "a local lives across setjmp and is not volatile"
        for k, why in check_gotos(lines, a, end, bodies):
            yield path, k, why
    if seen != sum("if (!wasm_rt_try(" in l for l in lines):
        yield path, 0, "a try block outside of every known function"


def move_data(path, text):
    def blob(found):
        name, body = found.group(1), found.group(2)
        file = os.path.join(os.path.dirname(path), name + ".bin")
        with open(file, "wb") as out:
            out.write(bytes(int(x, 16) for x in re.findall(r"0x[0-9a-f]+", body)))
        return (
            'extern const u8 %s[];\n__asm__(".pushsection .rodata\\n.balign 16\\n.globl %s\\n'
            '.hidden %s\\n%s:\\n.incbin \\"%s\\"\\n.popsection\\n");'
            % (name, name, name, name, os.path.abspath(file))
        )

    return DATA.sub(blob, text)


def main():
    directory, module = sys.argv[1:3]
    faults = []
    for path in sorted(glob.glob(os.path.join(directory, module + "*.c"))):
        with open(path) as f:
            text = f.read()
        faults += check(path, text)
        moved = move_data(path, text)
        if moved != text:
            with open(path, "w") as f:
                f.write(moved)
    for fault in faults[:20]:
        print("pod: gate: %s:%d: %s" % fault, file=sys.stderr)
    sys.exit(bool(faults))


main()
