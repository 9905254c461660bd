"""What people try on an R session beyond the common cases: conditions, ends, files, plots, what is not there."""
from book import case, has, same, session, value

R = ("r",)


def fails(s, code, *parts, kind="exception"):
    r = s.execute(code)
    assert not r.success and r.error_kind == kind, (code, r.success, r.error_kind, r.error)
    has(r.error, *parts)
    same(value(s.execute("1 + 1")), 2)
    return r


@case("R-01", R)
def conditions_end_where_R_ends_them(guest):
    with session(guest) as s:
        r = s.execute("warning('w'); message('m'); cat('o\n'); 5")
        same((value(r), r.stdout, r.stderr), (5, "o\n", "Warning: w\nm\n"))
        has(s.execute("f <- function(x) { warning('inner'); x }; f(1)").stderr, "Warning in f(1) : inner")
        same(value(s.execute("tryCatch(stop('a'), error = function(e) conditionMessage(e), finally = cat('fin\n'))")), "a")
        same(value(s.execute("withCallingHandlers(tryCatch(warning('x'), warning = function(w) 'caught'))")), "caught")
        has(fails(s, "f <- function() { on.exit(cat('bye\n')); stop('broken') }; f()", "broken").stdout, "bye")
        fails(s, "stop('quiet', call. = FALSE)", "quiet")
        fails(s, "stopifnot('one is not two' = 1 == 2)", "one is not two")
        fails(s, "options(warn = 2); as.integer('x')", "converted from warning")
        has(s.execute("options(warn = 0); warning('late'); 1").stderr, "late")
        fails(s, "options(warn = 1); stop(simpleCondition('no error'))", "no error")
        fails(s, "invokeRestart('abort')", "top level")
        same(s.execute("try(stop('tried'))").stderr, "Error in try(stop(\"tried\")) : tried\n")


@case("R-02", R)
def values_are_seen_as_at_the_prompt(guest):
    with session(guest) as s:
        same(s.execute("invisible(3)").text, None)
        same(s.execute("x <- 1; y = 2; x + y").text, "[1] 3")
        same(value(s.execute("1; 2; 3")), 3)
        same(value(s.execute("return(7)")), 7)
        same(value(s.execute("`été` <- 5; 日本 <- 1; `été` + 日本")), 6)
        same(value(s.execute("result <- 'wins'; 0")), "wins")
        has(s.execute("setClass('P', representation(x = 'numeric')); setMethod('show', 'P', function(object) cat('<P>')); "
                      "new('P', x = 1)").text, "<P>")
        has(s.execute("print.mine <- function(x, ...) cat('mine!'); structure(1, class = 'mine')").text, "mine!")
        has(s.execute("str(list(a = 1, b = 'x'))").stdout, "$ a: num 1")
        r = s.execute("print(1:1e6, max = 1e6)")
        assert r.truncated["stdout"] and len(r.stdout) <= (1 << 20) + 64, len(r.stdout)


@case("R-03", R)
def quitting_keeps_the_session(guest):
    with session(guest) as s:
        s.execute("kept <- 1")
        r = s.execute("q('no', status = 3)")
        same((r.success, r.exit_code), (False, 3))
        same(s.execute("quit()").exit_code, 0)
        same(s.execute("f <- function() { on.exit(cat('left')); quit(status = 9) }; f()").stdout, "left")
        same(value(s.execute("kept")), 1)


@case("R-04", R)
def time_runs_out(guest):
    with session(guest, {"grace_ms": 60000}) as s:
        s.execute("kept <- 1")
        for code, said in (("repeat {}", ""), ("Sys.sleep(60)", ""), ("tryCatch(repeat {}, finally = cat('done'))", "done"), ("readLines(pipe('sleep 60'))", "")):
            r = s.execute(code, timeout=1)
            if "pipe" not in code:
                same((r.error_kind, r.restarted, r.stdout), ("timeout", False, said))
            same(value(s.execute("kept + 1")), 2)
    with session(guest, {"grace_ms": 200}) as s:
        r = s.execute("while (TRUE) tryCatch(Sys.sleep(60), interrupt = function(e) 0, error = function(e) 0)", timeout=1)
        same((r.error_kind, r.restarted), ("timeout", True))
        same(value(s.execute("1 + 1")), 2)


@case("R-05", R)
def nobody_types(guest):
    with session(guest) as s:
        same(s.execute("readline('name? ')").stdout, "name? \n")
        same(value(s.execute("as.integer(readLines(file('stdin'), 1)) * 2L", stdin=b"21\n")), 42)
        same(value(s.execute("length(readLines(file('stdin')))")), 0)
        has(s.execute("browser(); 5").stderr, "browser()")
        has(s.execute("help(mean)").text, "Arithmetic Mean")
        fails(s, "menu(c('a', 'b'))", "non-interactively")


@case("R-06", R)
def files_of_the_workspace(guest):
    with session(guest) as s:
        same(value(s.execute("writeLines('answer <- 6 * 7; cat(\"sourced\\n\"); answer', 'a.R'); source('a.R')$value")), 42)
        same(value(s.execute("f <- tempfile(); writeLines('a', f); file.exists(f) && unlink(f) == 0 && !file.exists(f)")), True)
        same(value(s.execute("dir.create('d'); setwd('d'); basename(getwd())")), "d")
        same(value(s.execute("setwd('..'); saveRDS(mtcars, 'm.rds'); identical(readRDS('m.rds'), mtcars)")), True)
        same(value(s.execute("write.csv(data.frame(a = 1:2), 'f.csv', row.names = FALSE); sum(read.csv('f.csv')$a)")), 3)
        has(s.execute("try(readLines('/etc/shadow'))").stderr, "No such file or directory")
        has(s.execute("try(writeLines('x', '/etc/x'))").stderr, "Read-only file system")
        same(value(s.execute("file.exists('/root', '/home/user/.ssh')")), [False, False])
        fails(s, "setwd('/nowhere')", "cannot change working directory")
        s.execute("repeat {}", timeout=1)
        same(value(s.execute("file.exists('a.R') && file.create(tempfile())")), True)


@case("R-07", R)
def what_is_not_there(guest):
    with session(guest, policy={"env": ["PATH", "HOME", "LANG", "TZ"]}) as s:
        fails(s, "library(no.such.package)", "there is no package called")
        has(s.execute("suppressWarnings(require(no.such.package)); 1").stderr, "no.such.package")
        fails(s, "install.packages('jsonlite')", "without setting a mirror")
        r = s.execute("install.packages('jsonlite', repos = 'http://example.test')")
        assert any(d.operation == "socket" for d in r.denials), r.denials
        same(value(s.execute("system('echo hi', intern = TRUE)")), "hi")
        same(value(s.execute("system2('ls', c('-d', '/usr'), stdout = TRUE)")), "/usr")
        r = s.execute("readLines('http://example.test')")
        assert not r.success and any(d.operation == "socket" for d in r.denials), r.denials
        same(value(s.execute("nchar(Sys.getenv('MY_SECRET')) + nchar(Sys.getenv('R_LIBS')) + nchar(Sys.getenv('LD_PRELOAD'))")), 0)
        same(value(s.execute("Sys.info()[['nodename']] == 'sandbox' && Sys.getpid() < 100")), True)


@case("R-08", R)
def syntax_is_told_by_line(guest):
    with session(guest) as s:
        for code, word in (("x <- 1\ny <- )", "unexpected ')'"), ("f(", "unexpected end of input"), ("'abc", "unexpected INCOMPLETE_STRING"),
                           ("x <- c(1,\nprint(2) 3", "unexpected numeric constant"), ("y <- '\\u0000'", "nul character")):
            fails(s, code, word, kind="syntax")
        fails(s, "eval(parse(text = '1 +'))", "unexpected end of input")


@case("R-09", R)
def processes_of_parallel(guest):
    with session(guest) as s:
        same(value(s.execute("unlist(parallel::mclapply(1:3, function(i) i^2, mc.cores = 2))")), [1.0, 4.0, 9.0])
        same(value(s.execute("parallel::detectCores() >= 1")), True)
        same(value(s.execute("cat('one'); 5")), 5)


@case("R-10", R)
def plots_and_tables(guest):
    with session(guest) as s:
        def kinds(code):
            r = s.execute(code)
            return [o.mime for o in r.outputs], r.success
        same(kinds("plot(1:3); hist(mtcars$mpg)"), (["image/png"] * 2, True))
        same(kinds("par(mfrow = c(1, 2)); plot(1); plot(2)"), (["image/png"], True))
        same(kinds("plot(1:3); stop('after')"), (["image/png"], False))
        same(kinds("options(cordon.plot = 'svg'); plot(1)"), (["image/svg+xml"], True))
        same(kinds("options(cordon.plot = NULL); pdf('own.pdf'); plot(1); dev.off()"), ([], True))
        same(kinds("lattice::xyplot(mpg ~ wt, mtcars)"), (["image/png"], True))
        same(kinds("1"), ([], True))
        same(kinds("mtcars[1:2, ]"), (["text/html", "application/json"], True))
        same(kinds("structure('<b>x</b>', class = c('html', 'character'))"), (["text/html"], True))
        same(kinds("grid::rectGrob()"), (["image/png"], True))
