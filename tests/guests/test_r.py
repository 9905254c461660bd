# test_r.py - inside/guests/r.
import atexit
import base64
import json
import math
import os
import shutil
import struct
import subprocess
import tempfile
import time
import zlib

from driver import adder, BUILD, forklib, Gone, Guest, Stock, Template, TOP, validate


def runtime(bundle):
    """A directory as /run/cordon has it, with this for what the build compiled; None: nothing."""
    d = tempfile.mkdtemp(prefix="runtime-")
    atexit.register(shutil.rmtree, d, True)
    for name in ("cordon_start.R", "cordon_guest.R"):
        shutil.copy(os.path.join(TOP, "inside/guests/r", name), d)
    if bundle:
        shutil.copy(bundle, os.path.join(d, "cordon_r.rds"))
    return os.path.join(d, "cordon_start.R")


RUNTIME = runtime(os.path.join(BUILD, "inside/guests/r/cordon_r.rds"))
R_HOME = os.environ.get("CORDON_TEST_R_HOME") or "/usr/lib/R"
ARGV = [R_HOME + "/bin/exec/R", "--vanilla", "--no-echo", "-f", RUNTIME]
ENV = {"R_HOME": R_HOME, "R_SHARE_DIR": "/usr/share/R/share", "LD_LIBRARY_PATH": R_HOME + "/lib", "TZ": "UTC",
       "R_DEFAULT_PACKAGES": "NULL",
       "CORDON_R_LIB": os.environ.get("CORDON_R_LIB") or os.path.join(BUILD, "inside/guests/r/cordon_r.so")}
ADD = adder("numeric")
stock = Stock(ARGV, ENV)
guest, shared, reset = stock.guest, stock.shared, stock.reset


def vec(t, v, **k):
    return dict({"$": "vec", "t": t, "v": v}, **k)


def wrapped(v, attr=None, **more):
    return dict({"$": "attr", "v": v}, **more, **({"attr": attr} if attr else {}))


def test_hello():
    g = shared()
    assert g.hello["guest"] == "r" and g.hello["language"].startswith("4."), g.hello


def test_value_and_visibility():
    g = shared()
    r = g.run("1 + 1")
    assert r["value"] == 2 and r["text"] == "[1] 2"
    assert g.run("x <- 10\ny <- 20\nx + y")["value"] == 30
    r = g.run("invisible(5)")
    assert r["value"] == 5 and "text" not in r
    r = g.run("x <- 7")
    assert r["value"] == 7 and "text" not in r
    r = g.run("NULL")
    assert r["ok"] and r["value"] is None and "text" not in r
    assert "value" not in g.run("") and "value" not in g.run("# nothing")
    r = g.run("cat('hi\\n')")
    assert r["ok"] and r["value"] is None and r.stdout == "hi\n"
    for code in ("100000", "0.1+0.2", "1e-300", "123456789", "pi", "TRUE", "3L", "'a\"b'", "1e5+0.1", "NA", "-Inf"):
        r = g.run("capture.output(print(%s))" % code)["value"]
        assert g.run(code)["text"] == r, (code, r)
    assert "Levels: a b" in g.run("factor(c('a', 'b'))")["text"]


def test_state_persists():
    g = shared()
    g.run("x <- 10; f <- function(n) n * x")
    assert g.value("f(2)") == 20
    g.run("library(stats); set.seed(1); v <- rnorm(3)")
    assert len(g.value("v")["v"]) == 3


IS_COMPILED = "get('is_compiled', parent.env(environment(getOption('device'))))"


def test_the_runtime_comes_compiled():
    assert shared().value(IS_COMPILED) is True


def test_a_runtime_compiled_for_another_r_is_not_used():
    with tempfile.TemporaryDirectory() as d:
        other, broken = os.path.join(d, "other"), os.path.join(d, "broken")
        code = "saveRDS(list(version = 'R version 1.0.0', code = quote(stop('of another R'))), '%s')" % other
        subprocess.run([R_HOME + "/bin/Rscript", "--vanilla", "-e", code], check=True, timeout=60)
        with open(broken, "wb") as f:
            f.write(b"X\n\0\0\0\3 and no more")
        for bundle in (None, other, broken):
            with Guest(ARGV[:-1] + [runtime(bundle)], env=ENV) as g:
                assert g.value(IS_COMPILED) is False and g.value("sum(1:4)") == 10, bundle
                assert g.run("cat('said\\n'); stop('x')").stdout == "said\n"
        with Template(ARGV[:-1] + [runtime(other), "--args", "--template"], env=dict(ENV, CORDON_LIBGUEST=forklib())) as t:
            s = t.spawn()
            assert s.value(IS_COMPILED) is False and s.value("mean(1:3)") == 2
            s.close()


CLOSE = "invisible(parallel:::closeFD(c(%s)))"


def test_streams_are_whole_in_every_execution():
    with guest() as g:
        for code in (CLOSE % "1, 2", CLOSE % "0", "parallel:::closeStdout(TRUE)", "parallel:::closeStdin(TRUE)", "sink('f')",
                     "sink('f'); sink('g'); sink(file('h', 'w'), type = 'message')", "closeAllConnections()",
                     "sink('f'); stop('x')", "con <- file('stdin'); open(con); close(con)", "sink('f'); quit(status = 3)",
                     "con <- file('f', 'w'); sink(con); closeAllConnections()", CLOSE % "1" + "; cat('x'); stop('y')",
                     "sink(textConnection('x', 'w')); rm(list = ls())"):
            g.run(code)
            for _ in range(2):
                r = g.run("cat('back\\n'); message('too'); print(1)")
                assert r["ok"] and r.stdout.endswith("back\n[1] 1\n") and r.stderr == "too\n", (code, r, r.stdout, r.stderr)
                assert g.value("length(readLines(file('/dev/null')))") == 0


def test_what_was_printed_before_a_descriptor_was_lost_is_kept():
    with guest() as g:
        assert g.run("cat('before'); " + CLOSE % "1").stdout == "before"


def test_a_session_that_lost_every_descriptor_ends():
    with guest() as g:
        try:
            g.run(CLOSE % "1, 4:255")
        except Gone:
            return
    raise AssertionError("it goes on without stdout")


def test_what_persists():
    with guest() as g:
        g.run("dir.create('d'); setwd('d'); Sys.umask('27'); Sys.setlocale('LC_ALL', 'C'); Sys.setenv(A = 'b'); options(digits = 3)")
        assert g.value("c(basename(getwd()), format(Sys.umask()), Sys.getlocale('LC_TIME'), Sys.getenv('A'), getOption('digits'))") == vec(
            "string", ["d", "27", "C", "b", "3"])
        assert g.value("0.5") == 0.5 and g.value("intToUtf8(228)") == "ä"


def test_result_variable():
    with guest() as g:
        assert g.value("result <- 5; 6") == 5
        assert g.value("1 + 1") == 2
        assert g.value("result + 1") == 6
        assert g.value("result <- 5; 'other'") == 5
        assert g.value("result[2] <- 9; 0") == vec("float", [5.0, 9.0])
        assert g.value("assign('result', 'a'); 0") == "a"
        assert g.value("f <- function() result <<- 'b'; f(); 0") == "b"


def test_output_streams():
    g = shared()
    r = g.run("cat('out'); message('err'); write('raw', stdout()); print('ä☃😀'); system('echo child')")
    assert r.stdout == "outraw\n[1] \"ä☃😀\"\nchild\n" and r.stderr == "err\n", (r.stdout, r.stderr)
    r = g.run("warning('careful'); 5")
    assert r["value"] == 5 and r.stderr == "Warning: careful\n", r.stderr
    g.start("cat('first\\n'); Sys.sleep(0.4); cat('second\\n')")
    start = time.monotonic()
    while not g.out[g.pipes[1][0]]:
        g.pump(5)
    first = time.monotonic() - start
    assert g.finish().stdout == "first\nsecond\n" and time.monotonic() - start - first > 0.3


def test_stdin():
    g = shared()
    g.feed(b"5\n")
    assert g.value("as.integer(readLines(file('stdin'), 1)) * 2L") == 10


def test_errors():
    g = shared()
    r = g.run("stop('user error')")
    e = r.error
    assert e["kind"] == "exception" and e["message"] == "user error" and e["line"] == 1, r
    assert g.value("42") == 42
    r = g.run("f <- function(n) {\n  stop('in f')\n}\ng <- function() f(1)\ng()")
    assert r.error["line"] == 2 and "Error in f(1) : in f" in r.error["traceback"], r
    assert "g()" in r.error["traceback"] and "evaluate" not in r.error["traceback"]
    assert "exprs" not in r.error["traceback"]
    r = g.run("no_such_object")
    assert "no_such_object" in r.error["message"]
    r = g.run("f <- function() f()\nf()")
    assert not r["ok"] and ("nested too deeply" in r.error["message"] or "stack" in r.error["message"]), r
    r = g.run("stop(structure(class = c('custom', 'error', 'condition'), list(message = 'm', call = NULL)))")
    assert r.error["name"] == "custom"
    r = g.run("conditionMessage.bad <- function(c) stop('again')\n"
              "stop(structure(class = c('bad', 'error', 'condition'), list(message = 'm', call = NULL)))")
    assert not r["ok"] and r.error["kind"] == "exception"
    assert g.value("tryCatch(stop('x'), error = function(e) 'caught')") == "caught"
    assert len(g.run("stop(strrep('x', 1e6))").error["message"]) < 20000
    assert g.run("numeric(1e15)").error["kind"] == "memory"
    assert g.value("1 + 1") == 2


def test_warnings_are_said():
    with guest() as g:
        r = g.run("f <- function(x) { warning('careful'); x }\nf(5)")
        assert r["value"] == 5 and "Warning in f(5) : careful" in r.stderr, r.stderr
        r = g.run("options(warn = 0); for (i in 1:3) warning(paste('late', i))")
        assert r["ok"] and "late 1" in r.stderr and "late 3" in r.stderr, r.stderr
        assert g.run("length(warnings())")["value"] == 3
        r = g.run("warning('put off'); stop('then this')")
        assert r.error["message"] == "then this" and "put off" in r.stderr, r.stderr
        r = g.run("options(warn = 2); as.integer('x')")
        assert "converted from warning" in r.error["message"], r
        assert g.run("options(warn = 1); suppressWarnings(as.integer('x'))").stderr == ""


def test_jumps_to_the_top_level():
    with guest() as g:
        g.run("kept <- 1; try(stop('old'), silent = TRUE)")
        r = g.run("f <- function() { on.exit(cat('left\\n')); invokeRestart('abort') }; f(); 2")
        assert r.error["message"] == "the code jumped to the top level" and r.stdout == "left\n", r
        r = g.run("f <- function() stop(simpleCondition('custom', call = sys.call())); f()")
        assert r.error["message"] == "custom" and r.stderr == "Error in f() : custom\n", (r, r.stderr)
        assert len(g.run("plot(1:3); stop(simpleCondition('x'))").outputs) == 1
        assert g.value("kept") == 1


def test_nobody_is_at_the_terminal():
    with guest() as g:
        r = g.run("browser(); for (i in 1:2) i; 5")
        assert r["value"] == 5 and "browser()" in r.stderr and r.stdout == "", (r, r.stdout)
        assert "Arithmetic Mean" in g.run("help(mean)")["text"]
        assert [o["mime"] for o in g.run("View(data.frame(a = 1))").outputs] == ["text/html", "application/json"]
        assert "cancelled" in g.run("file.choose()").error["message"]
        assert g.value("readline('name? ')") == "" and g.value("parallel::detectCores() >= 1") is True
        assert "non-interactively" in g.run("menu(c('a', 'b'))").error["message"]


def test_number_formats():
    with guest() as g:
        for code in ("options(digits = 3); pi", "options(digits = 10); pi", "options(scipen = -5); 100"):
            want = g.run("utils::capture.output(print({%s}))" % code)["value"]
            assert g.run(code)["text"] == want, (code, want)


def test_top_level_frames():
    with guest() as g:
        assert g.value("identical(environment(), globalenv())") is True
        assert g.value("return(5); 6") == 6 and g.value("return(7)") == 7
        r = g.run("g <- function() sys.call()\nstop('here')")
        assert r.error["traceback"].startswith("Error: here") and "eval" not in r.error["traceback"], r
        for code in ("break", "next"):
            g.run(code)
            assert g.value("1") == 1


def test_syntax_errors():
    g = shared()
    for code, line in (("if (TRUE {", 1), ("x <- 1\ny <- )", 2), ("f(", 1), ("x <- 'abc", 1), ("x <- 1\ny <- f(", 2)):
        r = g.run(code)
        assert r.error["kind"] == "syntax" and (line is None or r.error["line"] == line), r
    assert g.run("eval(parse(text = '1 +'))").error["kind"] == "exception"
    assert g.value("1") == 1


def test_quit():
    g = shared()
    g.run("kept <- 1")
    for code, n in (("quit(status = 3)", 3), ("q('no')", 0), ("f <- function() quit(status = 4); f(); 5", 4),
                    ("tryCatch(q(status = 2), error = function(e) 0)", 2)):
        r = g.run(code)
        assert r["exit_code"] == n and r["ok"] == (n == 0), (code, r)
    assert g.value("kept") == 1


def test_interrupt():
    with guest(tools=[dict(ADD, name="slow", args={})]) as g:
        for code in ("while (TRUE) {}", "Sys.sleep(30)", "repeat sqrt(2)"):
            assert g.interrupt("cat('go\\n'); " + code).error["kind"] == "interrupted", code
            assert g.value("1 + 1") == 2
        g.start("slow()")
        assert g.recv()["type"] == "tool_call"
        time.sleep(0.1)
        g.signal()
        assert g.finish().error["kind"] == "interrupted"
        g.send({"type": "tool_result", "id": g.next_id, "call": 1, "value": "late"})
        assert g.value("'fine'") == "fine"
        g.signal()
        time.sleep(0.2)
        assert g.value("2") == 2 and g.value("3") == 3


def test_interrupt_of_programs():
    """system() ignores SIGINT while it waits, and must not go on with the code that follows."""
    with guest() as g:
        g.run("kept <- 7")
        wait, go = "echo go; sleep 30", "cat('go\\n'); flush(stdout()); "
        for code in (f"system('{wait}'); kept <- 8", f"repeat system('{wait}')", f"while (TRUE) system2('sh', c('-c', shQuote('{wait}')))",
                     go + "x <- system('sleep 30', intern = TRUE); kept <- 8", go + "system2('sleep', '30', stdout = TRUE, input = 'x'); kept <- 8",
                     f"tryCatch(system('{wait}'), finally = cat('finally\\n')); kept <- 8", go + f"system('{wait}'); kept <- 8"):
            r = g.interrupt(code, pid=-g.pid)
            assert r.error.get("kind") == "interrupted", (code, r)
            assert "finally" not in code or r.stdout == "go\nfinally\n", (code, r.stdout)
            assert g.value("kept") == 7, code
        assert g.run("system('exit 3')", show=True).stdout == "" and g.value("system('exit 3')") == 3
        assert g.value("parallel::mclapply(1:2, function(i) system('exit 2'), mc.cores = 2)[[2]]") == 2
        assert g.value("system2('echo', 'hi', stdout = TRUE)") == "hi"


DROP_HANDLER = "#include <signal.h>\nvoid drop_handler(void) { signal(SIGINT, SIG_DFL); }\n"


def test_the_handler_of_interrupts_comes_back():
    """R's Sys.sleep() may leave the default action behind, if the signal comes while it replaces the handler."""
    with tempfile.TemporaryDirectory() as d, guest() as g:
        path = os.path.join(d, "drop.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-o", path, "-"], input=DROP_HANDLER.encode(), check=True)
        g.run("dyn.load('%s')" % path)
        for code in ("invisible(.C('drop_handler'))", "invisible(.C('drop_handler')); stop('x')"):
            g.run(code)
            assert g.interrupt("cat('go\\n'); repeat {}").error["kind"] == "interrupted"


def test_values_exact():
    g = shared()
    table = [
        ("TRUE", True), ("NA", {"$": "na", "t": "logical"}), ("NA_integer_", {"$": "na", "t": "int"}),
        ("NA_real_", {"$": "na", "t": "float"}), ("NA_character_", {"$": "na", "t": "string"}),
        ("7L", 7), ("2", 2.0), ("0.1 + 0.2", 0.1 + 0.2), ("1e-300", 1e-300), ("5e-324", 5e-324), ("pi", math.pi),
        ("NaN", {"$": "float", "v": "nan"}), ("-Inf", {"$": "float", "v": "-inf"}),
        ("2^53 + 1", 2.0**53), ("-0.5", -0.5),
        ("'ä\\u2028😀\"\\\\'", "ä\u2028😀\"\\"), ("as.raw(c(0, 255))", {"$": "bytes", "v": "AP8="}),
        ("1+2i", {"$": "complex", "v": [1.0, 2.0]}),
        ("c(1, NA, NaN, Inf)", vec("float", [1.0, None, "nan", "inf"])), ("1:3", vec("int", [1, 2, 3])),
        ("c(a = 1L)", vec("int", [1], names=["a"])), ("character(0)", vec("string", [])),
        ("c('x', NA)", vec("string", ["x", None])), ("c(TRUE, NA)", vec("logical", [True, None])),
        ("c(1+1i, NA)", vec("complex", [[1.0, 1.0], None])),
        ("factor(c('lo', NA, 'hi'), levels = c('lo', 'hi'), ordered = TRUE)",
         {"$": "factor", "levels": ["lo", "hi"], "v": [1, None, 2], "ordered": True}),
        ("as.Date('2024-02-29')", {"$": "date", "v": "2024-02-29"}),
        ("as.Date(c('1900-03-01', NA))", vec("date", ["1900-03-01", None])),
        ("as.POSIXct('2024-02-29 12:00:00', tz = 'UTC')", {"$": "datetime", "v": "2024-02-29T12:00:00+00:00"}),
        ("as.POSIXct(1.25, origin = '1970-01-01', tz = 'UTC')",
         {"$": "datetime", "v": "1970-01-01T00:00:01.250000+00:00"}),
        ("as.difftime(1.5, units = 'mins')", {"$": "duration", "v": 90.0, "units": "mins"}),
        ("list(1, 'a', list())", [1.0, "a", []]), ("list(a = 1L, b = NULL)", {"a": 1, "b": None}),
        ("list(a = 1L, a = 2L)", {"$": "map", "v": [["a", 1], ["a", 2]]}),
        ("list(`$` = 1L)", {"$": "map", "v": [["$", 1]]}), ("list(1L, b = 2L)", {"$": "map", "v": [["", 1], ["b", 2]]}),
    ]
    for code, want in table:
        r = g.run(code)
        assert r["ok"] and r["value"] == want and type(r["value"]) is type(want), (code, r, want)
        back = g.run("identical(a, {%s})" % code, {"a": want})
        assert back.get("value") is True, (code, back, g.run("dput(a)").stdout)
    assert b'"value":2.0' in (g.run("2"), g.last_line)[1]
    assert g.value("a", {"a": 2**40}) == float(2**40) and g.value("a", {"a": 5}) == 5
    assert g.value("a", {"a": 2**60}) == {"$": "int", "v": str(2**60)}
    assert g.value("class(a)", {"a": {"$": "int", "v": "9" * 30}}) == "bigint"
    assert g.value("is.null(a)", {"a": None}) is True


def test_values_of_every_kind():
    """What docs/values.md says of R, and what people try; both ways where a value has a way back."""
    g = shared()
    big, wide = "9" * 40, str(2**60)
    table = [
        ("as.Date(NA)", {"$": "na", "t": "date"}), ("as.POSIXct(NA_real_, origin = '1970-01-01', tz = 'UTC')", {"$": "na", "t": "datetime"}),
        ("structure(NA_real_, class = 'difftime', units = 'secs')", {"$": "na", "t": "duration"}),
        ("structure('%s', class = 'bigint')" % big, {"$": "int", "v": big}),
        ("structure(c('%s', NA, '-1'), class = 'bigint')" % wide, [{"$": "int", "v": wide}, None, {"$": "int", "v": "-1"}]),
        ("structure(c('9007199254740993', NA), class = 'bigint')", vec("int", [9007199254740993, None])),
        ("structure('many', class = 'bigint')", wrapped("many", [["class", "bigint"]])),
        ("factor(c('a', NA), exclude = NULL)", {"$": "factor", "levels": ["a", None], "v": [1, 2], "ordered": False}),
        ("as.POSIXct('2024-07-01 12:00:00', tz = 'America/New_York')", {"$": "datetime", "v": "2024-07-01T16:00:00+00:00", "tz": "America/New_York"}),
        ("as.difftime(2, units = 'weeks')", {"$": "duration", "v": 1209600.0, "units": "weeks"}),
        ("raw(0)", {"$": "bytes", "v": ""}), ("list(a = NULL, b = list())", {"a": None, "b": []}),
        ("list(a = list(b = list(c = 1L)))", {"a": {"b": {"c": 1}}}), ("pairlist(a = 1L)", wrapped({"a": 1}, mode="pairlist")),
        ("-0.0", -0.0), ("2^31", 2.0**31), ("1:0", vec("int", [1, 0])), ("integer(0)", vec("int", [])),
        ("data.frame(x = I(list(1L, 'a', NULL)))", {"$": "frame", "names": ["x"], "columns": [wrapped([1, "a", None], [["class", "AsIs"]])],
                                                     "rows": 3}),
        ("mtcars[0, 1, drop = FALSE]", {"$": "frame", "names": ["mpg"], "columns": [vec("float", [])], "rows": 0,
                                        "index": vec("string", [])}),
        ("x <- 'caf\\xe9'; Encoding(x) <- 'latin1'; x", "café"), ("'\\U1F600\\u200d\\ufeff'", "\U0001F600\u200d\ufeff"),
        ("x <- 'bad\\xff'; x", wrapped("bad<ff>", bytes=[[0, "YmFk/w==", False]])), ("noquote('x')", wrapped("x", [["class", "noquote"]])),
        ("structure(1:2, class = 'mine')", wrapped(vec("int", [1, 2]), [["class", "mine"]])),
        ("quote(f(a, b = 1))", {"$": "lang", "v": [{"call": 3, "names": ["", "", "b"]}, "f", "a", {"value": 1.0}], "text": "f(a, b = 1)"}),
        ("y ~ x", wrapped({"$": "lang", "v": [{"call": 3}, "~", "y", "x"], "text": "y ~ x"},
                          [["class", "formula"], [".Environment", {"$": "env", "v": "global"}]])),
        ("expression(a)", wrapped([{"$": "lang", "v": ["a"], "text": "a"}], mode="expression")),
        ("table(c('a', 'b', 'a'))", wrapped({"$": "array", "dtype": "int32", "shape": [2], "v": "AgAAAAEAAAA=", "dimnames": [["a", "b"]]},
                                            [["dim", 2], ["dimnames", {"$": "map", "v": [["", vec("string", ["a", "b"])]]}], ["class", "table"]])),
        ("setClass('Q', slots = c(x = 'numeric', y = 'ANY')); new('Q', x = 1, y = NULL)",
         {"$": "s4", "class": wrapped("Q", [["package", ".GlobalEnv"]]), "slots": [["x", 1.0], ["y", None]]}),
    ]
    for code, want in table:
        r = g.run(code)
        assert r["ok"] and r["value"] == want and type(r["value"]) is type(want), (code, r, want)
    for code in ("as.Date(NA)", "structure(c('9007199254740993', NA), class = 'bigint')", "raw(0)", "integer(0)",
                 "as.POSIXct(NA_real_, origin = '1970-01-01', tz = 'UTC')", "structure(NA_real_, class = 'difftime', units = 'secs')",
                 "data.frame(x = 1:2, y = c('a', NA))[0, ]", "list(a = NULL, b = list())"):
        v = g.value(code)
        assert g.run("isTRUE(all.equal(a, {%s}))" % code, {"a": v}).get("value") is True, (code, v, g.run("dput(a)").stdout)
    if g.value("requireNamespace('bit64', quietly = TRUE)"):
        assert g.value("bit64::as.integer64('9007199254740993')") == wrapped(9007199254740993, mode="int64")
        assert g.value("bit64::as.integer64(c(1, NA))") == wrapped(vec("int", [1, None]), mode="int64")
        assert g.value("bit64::NA_integer64_") == wrapped({"$": "na", "t": "int"}, mode="int64")
    assert g.value("identical(a, 2^53)", {"a": 2**53}) is True
    assert g.value("class(a)", {"a": 2**53 + 1}) == "bigint" and g.value("a", {"a": -2**53 - 1}) == {"$": "int", "v": str(-2**53 - 1)}
    assert g.value("a", {"a": vec("int", [2**60, None])}) == [{"$": "int", "v": wide}, None]
    raw = base64.b64encode(struct.pack("<4q", 2**60, 1, -2**62, 3)).decode()
    assert g.value("c(class(a), dim(a), a[2, 1])", {"a": {"$": "array", "dtype": "int64", "shape": [2, 2], "v": raw}}) == vec(
        "string", ["bigint", "2", "2", str(-2**62)])
    for code, name in (("e <- new.env(); e$self <- e; e", "environment"), ("function(x) x", "function"), ("globalenv()", "environment"),
                       ("setRefClass('RC', fields = list(n = 'numeric'))$new(n = 1)", "RC"), ("sum", "function"), ("stdin()", "terminal")):
        v = g.value(code)
        assert v["$"] == "handle" and v["class"] == name, (code, v)
        assert g.value("identical(a, .Last)", {"a": v, ".Last": v}) is True
    r = g.run("1", {"a": {"$": "handle", "id": v["id"][::-1]}})
    assert r.error["kind"] == "value" and "not here" in r.error["message"], r
    r = g.run("rawToChar(as.raw(c(65, 0, 66)))")
    assert "embedded nul" in r.error["message"], r
    r = g.run("x <- 1\ny <- '\\u0000'")
    assert r.error["kind"] == "syntax" and r.error["line"] == 2, r


def test_what_is_too_large_harms_nothing():
    with guest() as g:
        for code in ("raw(9e6)", "matrix(0, 1500, 1500)", "list(raw(9e6), 1)", "strrep('x', 9e6)", "numeric(2e6)") * 3:
            r = g.run(code)
            assert r["ok"] and "value" not in r and len(r["text"]) < 70000, (code, str(r)[:300])
        assert g.run("for (i in 1:5) gc(); sum(as.numeric(1:1e5))")["value"] == 5000050000.0


def test_arrays_and_frames():
    g = shared()
    v = g.value("matrix(c(1.5, 2, 3, 4, 5, 6), 2, dimnames = list(NULL, c('a', 'b', 'c')))")
    assert v["dtype"] == "float64" and v["shape"] == [2, 3] and v["dimnames"] == [None, ["a", "b", "c"]]
    assert struct.unpack("<6d", base64.b64decode(v["v"])) == (1.5, 3, 5, 2, 4, 6)
    for code in ("matrix(1:6, 2)", "array(1:24, c(2, 3, 4))", "matrix(c(TRUE, FALSE), 1)", "matrix(c(1, NA), 1)",
                 "matrix(c(1+1i, 2), 2)", "matrix(c('a', NA, 'b', 'c'), 2)", "matrix(0, 0, 3)",
                 "data.frame(i = 1:2, f = c(0.5, NA), s = c('a', NA), l = c(TRUE, NA), d = as.Date(c('2024-01-01', NA)), "
                 "g = factor(c('x', 'y')), t = as.POSIXct(c(0, 1.5), origin = '1970-01-01', tz = 'UTC'))",
                 "mtcars", "data.frame()", "data.frame(a = 1, row.names = 'r')", "iris"):
        v = g.value(code)
        r = g.run("isTRUE(all.equal(a, %s, tolerance = 0))" % code, {"a": v})
        assert r.get("value") is True, (code, v, g.run("print(all.equal(a, %s)); dput(a)" % code).stdout)
    f = g.value("data.frame(i = 1:2, s = c('a', NA))")
    assert f == {"$": "frame", "names": ["i", "s"], "columns": [vec("int", [1, 2]), vec("string", ["a", None])],
                 "rows": 2}
    v = g.value("matrix(c(1L, NA), 1)")
    assert v["dtype"] == "float64"
    assert g.value("mean(df$mpg)", {"df": {"$": "frame", "names": ["mpg"], "rows": 2,
                                           "columns": [vec("float", [1.0, 2.0])]}}) == 1.5


def test_values_that_cannot_cross():
    g = shared()
    for code, word in (("x <- list(); for (i in 1:100) x <- list(x); x", "nested deeper"),
                       ("numeric(2e6)", "more than 1000000 elements"), ("strrep('x', 9e6)", "too large"),
                       ("raw(9e6)", "too large"), ("matrix(0, 1500, 1500)", "too large")):
        r = g.run(code)
        assert r["ok"] and "value" not in r and word in r["warnings"][0], (code, str(r)[:300])
    assert g.run("numeric(2e6)")["text"].startswith("   [1] 0 0 0 0")
    r = g.run("x <- list(0); for (i in 1:40) x <- list(x, x); x")
    assert r["ok"] and r["text"].startswith("List of 2\n $ :List of 2") and len(r["text"]) < 65536, str(r)[:300]
    r = g.run("print.bad <- function(x, ...) stop('no'); structure(list(), class = 'bad')")
    assert r["ok"] and r["value"] == wrapped([], [["class", "bad"]]) and "text" not in r, r
    r = g.run("f <- as.name('x'); for (i in 1:2000) f <- call('(', f); f")
    assert r["ok"] and "value" not in r and "nested too deeply" in r["warnings"][0], str(r)[:300]
    assert g.value("1") == 1


def test_every_visible_value_is_shown():
    g = shared()
    code = "1:3; invisible(5); x <- 3; 'a'\nif (FALSE) 1\nx"
    r = g.run(code, show=True)
    assert r["ok"] and r.stdout == '[1] 1 2 3\n[1] "a"\n' and r["text"] == "[1] 3", (r, r.stdout)
    r = g.run(code)
    assert r["ok"] and r.stdout == "" and r["text"] == "[1] 3", (r, r.stdout)
    r = g.run("print.odd <- function(x, ...) stop('no print'); structure(1, class = 'odd'); 2", show=True)
    assert "no print" in r.error["message"], r
    assert g.run("7", show=True).stdout == ""


def test_context_and_env():
    g = shared()
    assert g.value("x + y", {"x": 10, "y": 20}) == 30
    assert g.run("Sys.getenv('FOO')", env={"FOO": "b ar"})["value"] == "b ar"
    assert g.run("Sys.getenv('FOO', 'none')", env={"FOO": None})["value"] == "none"
    assert g.value("nchar(s)", {"s": "ä😀"}) == 2
    r = g.run("1", {"bad": {"$": "array", "dtype": "float64", "shape": [-1, -1], "v": "AAAAAAAA8D8="}})
    assert r.error.get("kind") == "value", r
    assert g.value("is.null(n)", {"n": None}) is True


def test_token_is_nowhere():
    with guest() as g:
        assert g.value("Sys.getenv('CORDON_TOKEN')") == ""
        text = g.run("cat(rawToChar({b <- readBin('/proc/self/environ', 'raw', 1e5); b[b == 0] <- as.raw(10); b}))").stdout
        assert "CORDON_TOKEN=xxx" in text and g.token not in text


def test_nothing_in_the_globals():
    with guest() as g:
        assert g.value("ls()") == vec("string", [])
        assert g.value("ls(all.names = TRUE)") == ".securer_call_tool"  # docs/guests.md


def test_plots():
    with guest() as g:
        r = g.run("plot(1:3); hist(mtcars$mpg); invisible()")
        assert [o["mime"] for o in r.outputs] == ["image/png"] * 2 and r.stderr == "", (r, r.stderr)
        assert base64.b64decode(r.outputs[0]["data"]).startswith(b"\x89PNG")
        assert not g.run("1").outputs and not os.path.exists(g.home + "/Rplots.pdf")
        r = g.run("plot(1:3); stop('after')")
        assert len(r.outputs) == 1 and r.error["message"] == "after"
        r = g.run("pdf('own.pdf'); plot(1); dev.off()")
        assert not r.outputs and os.path.exists(g.home + "/own.pdf")
        assert g.value("length(Sys.glob(file.path(tempdir(), 'plot*')))") == 0


def test_plots_as_values():
    with guest() as g:
        r = g.run("lattice::xyplot(mpg ~ wt, mtcars)")
        assert [o["mime"] for o in r.outputs] == ["image/png"] and r["value"] == {"$": "repr", "class": "trellis", "v": "<trellis>"}, r
        assert not g.run("1").outputs  # it was drawn once
        r = g.run("p <- lattice::xyplot(mpg ~ wt, mtcars); list(p, p)")
        assert r["ok"] and not g.run("1").outputs, r
        r = g.run("options(cordon.plot = 'svg'); plot(1:3)")
        assert r.outputs[0]["mime"] == "image/svg+xml" and b"<svg" in base64.b64decode(r.outputs[0]["data"])
        assert [o["mime"] for o in g.run("structure('<b>x</b>', class = c('html', 'character'))").outputs] == ["text/html"]


def colours(png):
    """How many different bytes its rows have: a blank picture has two or three."""
    data, at = b"", 8
    while at < len(png):
        size, = struct.unpack(">I", png[at:at + 4])
        if png[at + 4:at + 8] == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    return len(set(zlib.decompress(data)))


def test_ggplot():
    with guest() as g:
        there = g.value("requireNamespace('ggplot2', quietly = TRUE)")
        assert there or os.environ.get("CORDON_NEEDS") != "strict", "ggplot2 is not installed (r-cran-ggplot2)"
        if not there:
            return
        g.run("library(ggplot2); p <- ggplot(mtcars, aes(wt, mpg)) + geom_point()")
        for code in ("p", "print(p)", "p + ggtitle('Çà ☃'); p"):
            r = g.run(code)
            assert r["ok"] and [o["mime"] for o in r.outputs] == ["image/png"], (code, r, r.stderr)
            assert colours(base64.b64decode(r.outputs[0]["data"])) > 20, code
        assert g.run("p")["value"]["v"] == "<gg>" and not g.run("invisible(p)").outputs
        assert g.value("ggsave('a.png', p, width = 4, height = 3); file.size('a.png') > 1000") is True
        r = g.run("ggplot(mtcars, aes(no_such_column)) + geom_bar()")
        assert "no_such_column" in r.stderr and not g.run("1").outputs, (r, r.stderr)


def test_tables():
    r = shared().run("data.frame(a = 1:2, b = c('<x>', NA))")
    assert [o["mime"] for o in r.outputs] == ["text/html", "application/json"], r.outputs
    assert "&lt;x&gt;" in r.outputs[0]["data"]
    assert json.loads(r.outputs[1]["data"]) == {"columns": ["a", "b"], "index": ["1", "2"],
                                                "data": [[1, "<x>"], [2, None]]}
    assert not shared().run("invisible(data.frame(a = 1))").outputs


def test_tools():
    def fail():
        raise RuntimeError("tool failed")

    handlers = {"add": lambda a, b: a + b, "get": lambda key: {"a": 10, "b": 20}.get(key, 0), "fail": fail,
                "ping": lambda: "pong", "pi": lambda: math.pi, "echo": lambda v: v, "my.tool": lambda: 1,
                "opt": lambda **k: sorted(k)}
    tools = [ADD, {"name": "get", "args": {"key": {"type": "character", "required": True}}},
             {"name": "fail", "args": {}}, {"name": "ping", "args": {}}, {"name": "pi", "args": {}},
             {"name": "echo", "args": {"v": {"required": True}}}, {"name": "my.tool", "args": {}},
             {"name": "opt", "args": {"a": {"type": "integer", "required": True},
                                      "b": {"type": "string", "required": False}}}]
    with guest(tools=tools, handlers=handlers) as g:
        assert g.value("add(2, 3)") == 5 and g.value("x <- add(1, 2); add(b = x, a = 10)") == 13
        assert g.value("sum(sapply(c('a', 'b', 'c'), get))") == 30
        r = g.run("fail()")
        assert r.error["kind"] == "tool" and r.error["message"] == "tool failed", r
        assert g.value("tryCatch(fail(), error = function(e) conditionMessage(e))") == "tool failed"
        for code, text in (("add('hello', 3)", "Tool 'add': argument 'a' must be numeric, got character"),
                           ("add(1)", "Tool 'add': argument 'b' is missing"), ("add(1, 2, evil = 9)", "unused argument"),
                           ("ping(x = 1)", "unused argument"),
                           ("opt(1.5)", "Tool 'opt': argument 'a' must be integer, got numeric")):
            r = g.run(code)
            assert text in r.error["message"] and not r.calls, (code, r)
        assert g.value("ping()") == "pong" and g.value("my.tool()") == 1 and g.value("pi() == base::pi") is True
        assert g.value("opt(1)") == ["a"] and g.value("opt(1, 'x')") == ["a", "b"]
        assert g.value("call_tool('add', a = 1, b = 1)") == 2
        assert "Unknown tool" in g.run("call_tool('nope')").error["message"]
        for code in ("add <- 5", "add <- function(...) 'replaced'", "assign('add', 5)", ".securer_call_tool <- 5"):
            assert "cannot change value of locked binding for" in g.run(code).error["message"], code
        assert "locked binding" in g.run("1", {"add": 5}).error["message"]
        assert g.value("f <- function(add) add + 1; f(1)") == 2 and g.value("add(1, 2)") == 3
        assert g.run("assign('add', 5, pos = 'cordon:tools')").error["kind"] == "exception"
        assert "Adds two numbers." in g.run("help(add)").stdout
        assert g.value("rm(add); names(formals(add))") == vec("string", ["a", "b"])
        assert g.value(".securer_call_tool('add', a = 1, b = 1)") == 2
        for v in ("NULL", "c(a = 1, b = NA)", "list(1, list('x'))", "mtcars", "1e-300", "NaN", "factor('a')"):
            assert g.value("v <- %s; identical(echo(v), v)" % v) is True, v
        r = g.run("for (i in 1:2000) stopifnot(add(i, 1) == i + 1)")
        assert r["ok"] and len(r.calls) == 2000
        assert "too large" in g.run("echo(strrep('x', 2e6))").error["message"]
        assert g.value("add(1, 2)") == 3


def test_forked_children_are_silent():
    g = shared()
    r = g.run("p <- parallel::mcparallel(1 + 1); parallel::mccollect(p)[[1]]")
    assert r["ok"] and r["value"] == 2, r
    assert g.value("5") == 5


def test_exit_message():
    g = guest()
    g.run("1")
    g.send({"type": "exit"})
    try:
        g.recv()
        raise AssertionError("still there")
    except Gone:
        pass
    assert g.close() == 0


def test_large():
    g = shared()
    assert g.value("x <- 0\n" + "x <- x + 1\n" * 20000 + "x") == 20000
    assert len(g.run("cat(strrep('y', 3e6))").stdout) == 3000000
    assert len(g.value("as.numeric(1:200000)")["v"]) == 200000


def template(**k):
    return Template(ARGV + ["--args", "--template"], env=dict(ENV, CORDON_LIBGUEST=forklib()), **k)


def test_template():
    with template(options={"preload": ["splines", "no_such_package"]}) as t:
        assert t.hello.get("template") is True
        a, b = t.spawn(), t.spawn(tools=[ADD], handlers={"add": lambda a, b: a + b})
        a.run("x <- 1")
        assert "not found" in b.run("x").error["message"] and a.value("x") == 1
        r = b.run("cat('out'); message('err'); add(1, 2)")
        assert r["value"] == 3 and r.stdout == "out" and r.stderr == "err\n" and a.run("1").stdout == ""
        assert a.value("'package:splines' %in% search()") is True
        assert a.value("ls()") == "x"
        r = b.run("plot(1:3)")
        assert len(r.outputs) == 1, (r, r.stderr)
        more = [t.spawn() for _ in range(3)]
        draws = [json.dumps(s.value("c(runif(2), sample(1e6, 1))")) for s in [a, b] + more]
        names = [s.value("tempfile()") for s in [a, b] + more]
        assert len(set(draws)) == 5 and len(set(names)) == 5, (draws, names)
        pid = a.value("Sys.getpid()")
        assert a.interrupt("cat('go\\n'); repeat {}", pid).error["kind"] == "interrupted" and a.value("x") == 1
        for s in [a, b] + more:
            s.close()


def check(code):
    env = dict(os.environ, **ENV)
    os.environ.update(ENV)
    try:
        return validate(ARGV + ["--args", "--validate"], code)
    finally:
        os.environ.clear()
        os.environ.update(env)


def test_validation():
    for code in ("", "  \n", "mean(c(1, 2, 3))", "x <- 'system(1)' # url()", "system <- 1"):
        r = check(code)
        assert r["valid"] and r["error"] is None and r["warnings"] == [], (code, r)
    r = check("x <- 1\nif (TRUE {")
    assert not r["valid"] and r["line"] == 2 and r["column"] == 10 and "syntax error" in r["error"], r
    for code, name in (("system('ls')", "system"), ("x <- .Call('a')", ".Call"), ("y <- mean(url('x'))", "url"),
                       ("f <- function() do.call(g, list())", "do.call"), ("base::system('x')", "system"),
                       ("processx::run('x')", "processx::run")):
        r = check(code)
        assert r["valid"] and r["warnings"] == [
            "Code contains call to `%s()` which may be restricted by the sandbox" % name], (code, r)


def test_warnings_of_an_execution():
    with Guest(ARGV, env=ENV) as g:
        g.advised([("system('true')", ["system"]), ("x <- 1; y <- try(.Call('a'), silent = TRUE)", [".Call"]),
                   ("f <- function(g) do.call(g, list()); 1", ["do.call"]), ("base::eval(1)", ["eval"]),
                   ("try(callr::r(1), silent = TRUE)", ["callr::r"]), ("g <- function(x = eval(1)) x; 1", ["eval"])],
                  ["mean(c(1, 2))", "x <- 'system(1)' # url()", "system <- 1", "evaluate <- 2", "if (TRUE {"])


def test_template_rehearsals_are_silent():
    with template() as t:
        g = t.spawn(options={"ahead": True})
        time.sleep(0.3)
        r = g.run("cat('first\\n'); ls()")
        assert r.stdout == "first\n" and not r["value"]["v"], r
        g.close()


def test_characters_are_those_of_utf8():
    for env in ({"LC_ALL": "C"}, {"LANG": "C"}, {"LC_CTYPE": "POSIX", "LANG": ""}):
        with guest(env=dict(ENV, **env)) as g:
            r = g.run("x <- 'é'; print(x); cat(toupper(x)); message(x); f <- function(é) é; c(x, f('ü'))")
            assert r["value"] == vec("string", ["é", "ü"]), r
            assert r.stdout == '[1] "é"\nÉ' and r.stderr == "é\n", (env, r.stdout, r.stderr)
            g.run("Sys.setlocale('LC_ALL', 'C')")
            r = g.run("x <- 'ö'; print(x); nchar(x)")
            assert r["value"] == 1 and r.stdout == '[1] "ö"\n', (env, r, r.stdout)


def test_text_with_a_nul_is_refused():
    with guest(tools=[adder()], handlers={"add": lambda a, b: "x\0y"}) as g:
        for given in ("a\0b", ["a", "b\0"], {"k\0": 1}):
            r = g.run("1", {"t": given})
            assert not r["ok"] and r.error["kind"] == "value" and "NUL" in r.error["message"], r
        r = g.run("tryCatch(add(1, 2), error = conditionMessage)")
        assert "NUL" in r["value"], r
        assert g.value("t", {"t": {"$": "bytes", "v": "YQBi"}}) == {"$": "bytes", "v": "YQBi"}


def test_long_texts():
    g = shared()
    r = g.run("strrep('a', 5e6)")
    assert r["ok"] and len(r["value"]) == 5000000 and len(r["text"]) < 70000 and r["text"].endswith("..."), r.error
    r = g.run("strrep('é', 2.5e6)")
    assert r["ok"] and len(r["value"]) == 2500000 and len(r["text"].encode()) < 130000, r.error
    assert g.run("strrep('a', 65536)")["text"].endswith('a"')
    assert g.value("nchar(t)", {"t": "x" * 5000000}) == 5000000
