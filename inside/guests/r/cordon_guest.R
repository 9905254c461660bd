# cordon_guest.R - the R runtime inside a session: uses the wire (docs/wire.md) on descriptor 3 and runs
# code in the global environment. JSON, the wire and forking are in cordon_r.so beside this file.
#
#   R --vanilla --no-echo -f cordon_start.R                    one session
#   R --vanilla --no-echo -f cordon_start.R --args --template  warms up, then a session per spawn request
#   R --vanilla --no-echo -f cordon_start.R --args --validate  checks the code on stdin, runs nothing
#
# Nothing here is a security boundary: the code can reach all of it if it tries.
local({

here <- local({
	file <- grep("^--file=", commandArgs(FALSE), value = TRUE)
	args <- commandArgs(FALSE)
	path <- if (length(file)) sub("^--file=", "", file[1]) else args[which(args == "-f")[1] + 1]
	normalizePath(dirname(path))
})
library_path <- function(env, name) {
	path <- Sys.getenv(env)
	if (nzchar(path)) path else file.path(here, name)
}

# --vanilla reads no Renviron, which is where Debian keeps its library directories.
.libPaths(c("/usr/local/lib/R/site-library", "/usr/lib/R/site-library", .libPaths()))
# Where packages are installed into the workspace. It may be made later, so this does not ask whether it is there.
own_library <- file.path(path.expand("~"), "R", paste0(R.version$platform, "-library"),
	paste(R.version$major, sub("[.].*", "", R.version$minor), sep = "."))
local({
	paths <- environment(.libPaths)
	paths$.lib.loc <- c(own_library, paths$.lib.loc)
})

# R finds programs by running `which` in a shell, and the package utils does not load without an answer. This
# searches PATH instead. The host starts R with R_DEFAULT_PACKAGES=NULL, so that this comes first.
set_base <- function(name, value) {
	base <- baseenv()
	unlockBinding(name, base)
	assign(name, value, envir = base)
	lockBinding(name, base)
}
set_base("Sys.which", function(names) {
	dirs <- strsplit(Sys.getenv("PATH"), ":", fixed = TRUE)[[1]]
	found <- vapply(as.character(names), function(name) {
		paths <- if (grepl("/", name, fixed = TRUE)) name else file.path(dirs, name)
		paths <- paths[file.access(paths, 1L) == 0L & !file.info(paths, extra_cols = FALSE)$isdir %in% TRUE]
		if (length(paths)) paths[[1L]] else ""
	}, "")
	names(found) <- names
	found
})
# utils asks `uname` for the system's name if there is one. Without PATH it finds none, and R starts no program.
local({
	path <- Sys.getenv("PATH")
	Sys.setenv(PATH = "")
	for (package in c("methods", "datasets", "utils", "grDevices", "graphics", "stats"))
		library(package, character.only = TRUE, warn.conflicts = FALSE)
	Sys.setenv(PATH = path)
})
# It refuses a library that is not there, and without a terminal it cannot ask whether to make it.
local({
	install <- utils::install.packages
	body(install) <- bquote({
		if (missing(lib)) dir.create(.(own_library), FALSE, TRUE)
		.(body(install))
	})
	for (where in list(asNamespace("utils"), as.environment("package:utils"))) {
		unlockBinding("install.packages", where)
		assign("install.packages", install, envir = where)
		lockBinding("install.packages", where)
	}
})

# ---- validation

watched <- c("system", "system2", "shell", ".Internal", "Sys.setenv", ".Call", ".C", ".Fortran", ".External",
	".External2", "dyn.load", "pipe", "processx::run", "callr::r", "socketConnection", "url", "do.call",
	"eval", "download.file", "install.packages", "library.dynam", "unlink", "file.remove", "setwd", "quit", "q")

advice <- function(parsed) {
	data <- utils::getParseData(parsed)
	calls <- data[data$token == "SYMBOL_FUNCTION_CALL", ]
	found <- character()
	for (i in seq_len(nrow(calls))) {
		name <- calls$text[i]
		package <- data$text[data$parent == calls$parent[i] & data$token == "SYMBOL_PACKAGE"]
		both <- if (length(package)) paste0(package[1], "::", name)
		hit <- c(intersect(both, watched), if (length(package) == 0 ||
			package[1] %in% c("base", "utils")) intersect(name, watched))
		found <- c(found, hit[1][length(hit) > 0])
	}
	sprintf("Code contains call to `%s()` which may be restricted by the sandbox", unique(found))
}

# The same from parsed code without source references, for executions whose code contains one of these words.
watched_words <- sub("::.*$", "", watched)

calls_in <- function(e, found) {
	if (is.call(e)) {
		f <- e[[1L]]
		name <- if (is.name(f)) as.character(f)
			else if (is.call(f) && length(f) == 3L && is.name(f[[1L]]) &&
				as.character(f[[1L]]) %in% c("::", ":::")) {
				package <- as.character(f[[2L]])
				if (package %in% c("base", "utils")) as.character(f[[3L]])
				else paste0(package, "::", as.character(f[[3L]]))
			}
		if (length(name) && name %in% watched) found <- c(found, name)
	}
	if (is.call(e) || is.expression(e) || is.pairlist(e))
		for (i in seq_along(e)) {
			part <- e[[i]]
			if (!missing(part) && (is.call(part) || is.pairlist(part))) found <- calls_in(part, found)
		}
	found
}

advice_of <- function(exprs, code) {
	found <- unique(calls_in(exprs, character()))
	if (!length(found)) return(character())
	sprintf("Code contains call to `%s()` which may be restricted by the sandbox", found)
}

# R reports an unexpected end of input on the line after the last; the last line is more useful.
parse_place <- function(message, code) {
	m <- regmatches(message, regexec("^<[^>]*>:([0-9]+):([0-9]+): ", message))[[1]]
	if (!length(m)) # of the scanner
		m <- regmatches(message, regexec("\\((?:line |<[^>]*>:)([0-9]+)(?::([0-9]+))?\\)$", message, perl = TRUE))[[1]]
	lines <- lengths(regmatches(code, gregexpr("\n", sub("\n+$", "", code), fixed = TRUE))) + 1L
	list(line = if (length(m)) min(as.integer(m[2]), max(lines, 1L)), column = if (length(m) && nzchar(m[3])) as.integer(m[3]),
		text = sub("^<[^>]*>:[0-9]+:[0-9]+: ", "", strsplit(message, "\n")[[1]][1]))
}

validate <- function() {
	con <- file("stdin", "rb")
	bytes <- raw()
	while (length(part <- readBin(con, "raw", 65536L))) bytes <- c(bytes, part)
	close(con)
	said <- list(valid = TRUE, error = NULL, line = NULL, column = NULL, warnings = list())
	if (any(bytes == 0)) {
		said$valid <- FALSE
		said$error <- "the code contains a NUL"
	} else {
		code <- gsub("\r\n", "\n", sub("^\xef\xbb\xbf", "", rawToChar(bytes), useBytes = TRUE), fixed = TRUE, useBytes = TRUE)
		Encoding(code) <- "UTF-8"
		tryCatch({
			parsed <- parse(text = code, keep.source = TRUE)
			said$warnings <- as.list(advice(parsed))
		}, error = function(e) {
			place <- parse_place(conditionMessage(e), code)
			said$valid <<- FALSE
			said$error <<- paste("syntax error:", place$text)
			said["line"] <<- list(place$line)
			said["column"] <<- list(place$column)
		})
	}
	field <- function(x) if (is.null(x)) "null" else
		.Call(wire_encode, x, function(x) "", 1e6)
	cat(sprintf('{"valid":%s,"error":%s,"line":%s,"column":%s,"warnings":%s}\n', field(said$valid),
		field(said$error), field(said$line), field(said$column), field(said$warnings)))
}

dll <- dyn.load(library_path("CORDON_R_LIB", "cordon_r.so"))
for (routine in c("wire_token", "wire_send", "wire_welcome", "wire_call", "wire_encode", "wire_output", "wire_flush",
	"wire_quote", "wire_interrupts", "wire_fits", "wire_program", "wire_readline", "turn_asking", "fork_serve", "turn_init", "turn_welcome", "turn_serve", "turn_top", "turn_state", "turn_running",
	"turn_warnings", "turn_reply", "turn_error", "turn_cores"))
	assign(routine, getNativeSymbolInfo(routine, dll))

if ("--validate" %in% commandArgs(TRUE)) {
	validate()
	return(invisible())
}

# R asks only at its own prompt.
local({
	silent <- base::readline
	set_base("readline", function(prompt = "") {
		if (!.Call(turn_asking)) return(silent(prompt))
		cat(prompt)
		flush(stdout())
		.Call(wire_readline)
	})
})

# An interrupt ends the program that they wait for, and then the code too.
for (name in c("system", "system2")) local({
	f <- get(name, baseenv())
	steps <- as.list(body(f))
	last <- length(steps)
	if (!identical(steps[[last]][[1L]], quote(.Internal))) return() # another R
	check <- function(begins) bquote(.Call(.(wire_program), .(begins), timeout > 0))
	body(f) <- as.call(c(steps[-last], bquote(on.exit(.(check(FALSE)), add = TRUE)), check(TRUE), steps[last]))
	set_base(name, f)
})

# ---- state of the session

token <- .Call(wire_token, "--template" %in% commandArgs(TRUE))
tool_bytes <- list()
main <- globalenv()
runtime <- environment()
.Call(turn_init, runtime, watched_words)

is_plot <- function(x) inherits(x, c("ggplot", "trellis", "recordedplot", "grob", "gtable"))

# A value as print() shows it, up to a limit. A plot is drawn instead.
printed <- function(x) {
	if (is_plot(x)) return(paste0("<", class(x)[1], ">"))
	old <- base::options(max.print = 5000L, width = 80L)
	on.exit(base::options(old))
	if (typeof(x) == "character" && is.null(attributes(x))) x <- substr(x, 1L, 65536L) # print() is slow with long ones
	text <- paste(utils::capture.output(print(x)), collapse = "\n")
	if (nchar(text, "bytes") > 65536) paste0(substr(text, 1, 60000), "...") else enc2utf8(text)
}

text_of <- function(x) tryCatch(printed(x), error = function(e) NULL)

# The value of an expression that is not the last. A figure is drawn by its print().
show_one <- function(x) print(x)

# Of a list that cannot cross: one that has the same list in it twice, and so on forty times, has no end when printed.
outline_of <- function(x) tryCatch(paste(utils::capture.output(utils::str(x, max.level = 4L, list.len = 20L)), collapse = "\n"),
	error = function(e) NULL)

# ---- rich outputs

emit <- function(mime, data, name = NULL) {
	if (!.Call(wire_output, mime, data, name))
		cat("cordon: an output of type ", mime, " was left out: too large\n", sep = "", file = stderr())
}

# Code that plots without opening a device gets one of ours: pages in files, sent when the code ends.
plot_files <- NULL
plot_devices <- integer()
plot_number <- 0L
new_device <- function(...) {
	kind <- if (!isTRUE(capabilities("cairo"))) "pdf" else if (identical(getOption("cordon.plot"), "svg")) "svg" else "png"
	if (is.null(plot_files)) plot_files <<- tempfile("plot")
	plot_number <<- plot_number + 1L
	name <- sprintf("%s-%03d-%%03d.%s", plot_files, plot_number, kind)
	switch(kind, png = grDevices::png(name, width = 960, height = 720, res = 120, type = "cairo"),
		svg = grDevices::svg(name, width = 8, height = 6, onefile = FALSE),
		pdf = grDevices::pdf(name, onefile = FALSE))
	plot_devices <<- c(plot_devices, grDevices::dev.cur())
}

send_plots <- function() {
	if (is.null(plot_files)) return()
	for (d in plot_devices) if (d %in% grDevices::dev.list()) grDevices::dev.off(d)
	files <- sort(Sys.glob(paste0(plot_files, "-*")))
	mimes <- c(png = "image/png", svg = "image/svg+xml", pdf = "application/pdf")
	for (i in seq_along(files)) {
		emit(mimes[[sub("^.*[.]", "", files[i])]], readBin(files[i], "raw", file.size(files[i])), paste("plot", i))
		unlink(files[i])
	}
	plot_devices <<- integer()
	plot_files <<- NULL
	plot_number <<- 0L
}

html_escape <- function(x) {
	x <- gsub("&", "&amp;", x, fixed = TRUE)
	gsub(">", "&gt;", gsub("<", "&lt;", x, fixed = TRUE), fixed = TRUE)
}

send_frame <- function(x) {
	shown <- utils::head(as.data.frame(x), 60L)
	cells <- vapply(shown, function(col) html_escape(format(col)), character(nrow(shown)))
	cells <- matrix(cells, nrow = nrow(shown))
	row <- function(tag, v) paste0("<tr>", paste0("<", tag, ">", v, "</", tag, ">", collapse = ""), "</tr>")
	body <- vapply(seq_len(nrow(shown)), function(i)
		sub("<td>([^<]*)</td>", "<th>\\1</th>", row("td", c(html_escape(rownames(shown)[i]), cells[i, ]))), "")
	emit("text/html", paste0("<table><thead>", row("th", c("", html_escape(names(shown)))),
		"</thead><tbody>", paste(body, collapse = ""), "</tbody></table>",
		if (nrow(x) > 60L) sprintf("<p>%d rows x %d columns</p>", nrow(x), ncol(x)) else ""))
	x <- utils::head(as.data.frame(x), 1000L)
	value <- function(v) if (is.list(v)) lapply(v, function(e) printed(e)) else
		lapply(if (is.factor(v) || !is.null(attr(v, "class"))) as.character(v) else v,
			function(e) if (is.na(e)) NULL else e)
	columns <- lapply(x, value)
	data <- lapply(seq_len(nrow(x)), function(i) unname(lapply(columns, `[[`, i)))
	json <- .Call(wire_encode, list(columns = as.list(names(x)), index = as.list(rownames(x)), data = data),
		printed, NULL)
	if (is.character(json)) emit("application/json", json)
}

# ---- tools

words <- c(number = "numeric", numeric = "numeric", double = "numeric", string = "character",
	character = "character", boolean = "logical", logical = "logical", integer = "integer",
	array = "list", list = "list", object = "list", data.frame = "data.frame", bytes = "raw")
is_whole <- function(x) is.integer(x) || is.numeric(x) && all(is.finite(x)) && all(x == trunc(x))
checks <- list(numeric = is.numeric, character = is.character, logical = is.logical, integer = is_whole,
	list = function(x) is.list(x) || is.atomic(x) && !is.null(x), data.frame = is.data.frame, raw = is.raw)
# For wire_fits: the R types that need no further look, one bit each.
plain <- c(numeric = 3L, integer = 2L, logical = 4L, character = 8L, raw = 16L, list = 32L)

tool_error <- function(message, call = NULL)
	structure(class = c("ToolError", "error", "condition"), list(message = message, call = call))

call_tool <- function(name, args) {
	answer <- .Call(wire_call, name, args, tool_bytes[[name]], printed)
	if (!is.null(names(answer))) stop(tool_error(answer[[1]])) # the name is "error"
	answer[[1]]
}

make_tool <- function(spec) {
	name <- spec$name
	declared <- spec$args
	arg_names <- names(declared)
	if (isTRUE(spec$command) && all(arg_names %in% c("args", "stdin", "cwd", "env"))) {
		context <- function() {
			env <- as.list(Sys.getenv())
			list(cwd = getwd(), env = env[!startsWith(names(env), "CORDON_")])[intersect(arg_names, c("cwd", "env"))]
		}
		return(eval(bquote(function(..., stdin = "")
			.(call_tool)(.(name), c(list(args = lapply(list(...), as.character), stdin = stdin), .(context)())))))
	}
	kinds <- vapply(declared, function(d) {
		type <- if (is.list(d)) d$type else d
		type <- if (length(type)) type[[1]] else ""
		if (is.character(type) && type %in% names(words)) words[[type]] else ""
	}, "")
	optional <- vapply(declared, function(d) is.list(d) && identical(d$required, FALSE), NA)
	tests <- lapply(kinds, function(kind) checks[[kind]])
	whole <- kinds == "integer"
	has_optional <- any(optional)
	present <- seq_along(kinds)
	simple <- unname(ifelse(kinds %in% names(plain), plain[kinds], 0L))
	run <- compiler::cmpfun(function(args) {
		if (.Call(wire_fits, args, simple)) return(call_tool(name, args))
		if (has_optional) present <- which(!(optional & vapply(args, is.null, NA)))
		for (i in present) {
			x <- args[[i]]
			test <- tests[[i]]
			if (!is.null(test) && !test(x))
				stop(tool_error(sprintf("Tool '%s': argument '%s' must be %s, got %s", name, arg_names[[i]],
					kinds[[i]], class(x)[1])))
			# A whole number is sent as an integer if the tool wants one.
			if (whole[[i]] && is.double(x) && all(abs(x) < 2^31)) storage.mode(args[[i]]) <- "integer"
		}
		call_tool(name, if (has_optional) args[present] else args)
	})
	absent <- function(n) stop(tool_error(sprintf("Tool '%s': argument '%s' is missing", name, n)))
	formals <- rep(list(quote(expr = )), length(declared))
	formals[optional] <- list(NULL)
	names(formals) <- arg_names
	asks <- lapply(arg_names[!optional], function(n) bquote(if (missing(.(as.name(n)))) .(absent)(.(n))))
	given <- lapply(arg_names, as.name)
	names(given) <- arg_names
	body <- as.call(c(quote(`{`), asks, as.call(list(run, as.call(c(list(list), given))))))
	compiler::cmpfun(as.function(c(formals, body), envir = baseenv()))
}

document <- function(spec) {
	lines <- if (length(spec$description)) spec$description else "A tool of the host."
	if (length(spec$usage)) lines <- c(lines, paste("Usage:", spec$usage))
	for (example in spec$examples) lines <- c(lines, paste("Example:", example))
	for (n in names(spec$args)) {
		d <- spec$args[[n]]
		type <- if (is.list(d)) d$type else d
		lines <- c(lines, sprintf("  %s: %s%s", n, if (length(type)) type[[1]] else "any",
			if (is.list(d) && identical(d$required, FALSE)) ", optional" else ""))
	}
	lines
}

# The names of tools are also locked in the global environment: code that assigns to one fails, and does not replace the
# tool without anyone noticing. Code that removes the name still finds the tool, in "cordon:tools".
locked <- character()
lock_names <- local({
	# A tool may have the name of a function that this needs.
	bind <- base::assign
	lock <- base::lockBinding
	function(env, names) {
		old <- locked[vapply(locked, exists, NA, envir = main, inherits = FALSE)]
		rm(list = old, envir = main)
		locked <<- names
		for (name in names) {
			bind(name, env[[name]], envir = main)
			lock(name, main)
		}
	}
})

install_tools <- function(specs) {
	env <- new.env(parent = emptyenv())
	docs <- list()
	for (spec in specs) {
		tool_bytes[[spec$name]] <<- spec$argument_bytes
		docs[[spec$name]] <- document(spec)
		fn <- make_tool(spec)
		comment(fn) <- docs[[spec$name]]
		assign(spec$name, fn, envir = env)
	}
	env$call_tool <- function(name, ...) call_tool(name, list(...))
	env$.securer_call_tool <- env$call_tool # its name in securer
	env$help <- function(topic, ...) {
		name <- if (missing(topic)) "" else as.character(substitute(topic))[1]
		if (!is.null(docs[[name]])) cat(docs[[name]], sep = "\n")
		else eval.parent(as.call(c(quote(utils::help), as.list(match.call())[-1])))
	}
	lockEnvironment(env, bindings = TRUE)
	attached <- attach(env, name = "cordon:tools", warn.conflicts = FALSE)
	lockEnvironment(attached, bindings = TRUE)
	lock_names(env, c(names(docs), ".securer_call_tool"))
}

# ---- one execution

quit_now <- function(save = "default", status = 0, runLast = TRUE) {
	if (.Call(turn_running)) signalCondition(structure(class = c("cordon_quit", "condition"),
		list(message = "quit", call = NULL, status = status)))
	.Internal(quit("no", as.integer(status), FALSE))
}

# Whether the code assigns the variable anywhere: then it is the result, even with the same value as before.
assigns <- function(e, name) {
	if (is.call(e)) {
		f <- e[[1]]
		if (is.name(f) && as.character(f) %in% c("<-", "=", "<<-", "for") && length(e) >= 2) {
			target <- e[[2]]
			while (is.call(target) && length(target) >= 2) target <- target[[2]]
			if (identical(as.character(target), name)) return(TRUE)
		}
		if (is.name(f) && identical(as.character(f), "assign") && length(e) >= 2 &&
			identical(e[[2]], name)) return(TRUE)
	}
	if (is.call(e) || is.expression(e) || is.pairlist(e))
		for (i in seq_along(e)) {
			part <- e[[i]]
			if (!missing(part) && (is.call(part) || is.pairlist(part)) && assigns(part, name)) return(TRUE)
		}
	FALSE
}

# Whether it is the call of eval() with which turn.c runs an expression of the code.
is_top <- function(x, top) is.call(x) && length(x) == 3L && length(top) == 3L && identical(x[[2L]], top[[2L]]) &&
	identical(x[[1L]], top[[1L]])

frames_of <- function(calls, top) {
	# From the first frame of the code (after our own) to the one that signalled.
	start <- 0L
	for (i in seq_len(min(length(calls), 40L))) if (is_top(calls[[i]], top)) start <- i
	calls <- calls[-seq_len(start)]
	names <- vapply(calls, function(x) paste(deparse(x[[1]], nlines = 1L), collapse = ""), "")
	calls[!names %in% c(".handleSimpleError", "h", "withCallingHandlers", "signalCondition") &
		!grepl("^\\(?(function|<)", names)]
}

describe <- function(e, calls, turn) {
	message <- tryCatch(paste(conditionMessage(e), collapse = "\n"), error = function(x) "")
	name <- class(e)[1]
	kind <- if (inherits(e, "ToolError")) "tool" else
		if (grepl("^cannot allocate (memory|vector|buffer)|memory exhausted", message)) "memory" else "exception"
	call <- tryCatch(conditionCall(e), error = function(x) NULL)
	if (is_top(call, turn$call)) call <- NULL
	shown <- tryCatch(vapply(frames_of(calls, turn$call), function(x) deparse(x, width.cutoff = 80L, nlines = 1L)[1], ""),
		error = function(x) character())
	head <- if (is.null(call)) paste0("Error: ", message) else
		paste0("Error in ", deparse(call, nlines = 1L)[1], " : ", message)
	if (length(shown) > 50) shown <- c(shown[1:20], "...", utils::tail(shown, 29))
	text <- paste(c(head, if (length(shown)) c("Traceback:", paste0("  ", seq_along(shown), ": ", shown))),
		collapse = "\n")
	line <- tryCatch(line_of(calls, turn$exprs, turn$at), error = function(x) NULL)
	cut <- function(t, n) if (nchar(t, "bytes") > n) paste0(substr(t, 1, n), "...") else t
	error_fields(kind, name, cut(message, 16000), cut(text, 30000), line)
}

line_of <- function(calls, exprs, at) {
	refs <- attr(exprs, "srcref")
	best <- if (length(refs) >= at && at > 0) refs[[at]][1] else if (is.null(refs)) 1L
	for (call in calls) {
		ref <- attr(call, "srcref")
		if (!is.null(ref) && identical(attr(ref, "srcfile"), attr(exprs, "srcfile"))) best <- ref[1]
	}
	best
}

error_fields <- function(kind, name, message, traceback = NULL, line = NULL) {
	q <- function(x) .Call(wire_quote, enc2utf8(x))
	paste0(',"error":{"kind":', q(kind), ',"name":', q(name), ',"message":', q(message),
		if (!is.null(traceback)) paste0(',"traceback":', q(traceback)),
		if (!is.null(line)) paste0(',"line":', as.integer(line)), "}")
}

change_env <- function(env) for (name in names(env))
	if (is.null(env[[name]])) Sys.unsetenv(name) else
		do.call(Sys.setenv, stats::setNames(list(as.character(env[[name]])), name))

end_sinks <- function(is_output) tryCatch(if (is_output) while (sink.number() > 0L) sink() else sink(type = "message"),
	error = function(e) NULL)

parsed <- function(code) parse(text = code, keep.source = TRUE)

# What a prompt asks about code that does not run. R says at the end of what is not complete that it expected more.
completeness <- function(code) list(status = tryCatch({
	parse(text = code, keep.source = FALSE)
	"complete"
}, error = function(e) if (grepl("unexpected end of input|unexpected INCOMPLETE_STRING|malformed raw string literal",
	conditionMessage(e))) "incomplete" else "invalid"))

# R's own completion, as its console has it.
completions <- function(code) {
	line <- sub("^.*\n", "", code)
	rc <- asNamespace("utils")
	rc$.assignLinebuffer(line)
	rc$.assignEnd(nchar(line, "bytes"))
	token <- rc$.guessTokenFromLine()
	rc$.completeToken()
	found <- rc$.retrieveCompletions()
	list(token = token, matches = as.list(utils::head(found[nzchar(found)], 200L)))
}

# The print() method of a grob only shows its name.
draw <- function(x) if (inherits(x, c("grob", "gtable"))) {
	grid::grid.newpage()
	grid::grid.draw(x)
} else print(x)

# Values that htmltools and knitr mark as HTML, and widgets that htmltools can write.
html_of <- function(x) {
	if (is.character(x) && (inherits(x, "html") || inherits(x, "knitr_kable") && identical(attr(x, "format"), "html")))
		paste(enc2utf8(unclass(x)), collapse = "\n")
	else if (inherits(x, c("shiny.tag", "shiny.tag.list", "htmlwidget")) && requireNamespace("htmltools", quietly = TRUE))
		as.character(htmltools::as.tags(x))
}

# Sends plots and tables. A failure here is only printed on stderr.
finish <- function(value, visible) tryCatch({
	.Call(wire_interrupts, TRUE)
	if (visible) {
		if (is_plot(value)) draw(value)
		if (is.data.frame(value)) send_frame(value)
		html <- html_of(value)
		if (!is.null(html)) emit("text/html", html)
	}
	send_plots()
	.Call(wire_interrupts, FALSE)
}, error = function(e) {
	.Call(wire_interrupts, FALSE)
	cat("cordon: no rich output: ", conditionMessage(e), "\n", sep = "", file = stderr())
})

# After an execution that failed: what it has drawn. An interrupt has nothing more to end.
finish_rest <- function() tryCatch(finish(NULL, FALSE), interrupt = function(e) .Call(wire_interrupts, FALSE))

# Where an error came from; only a calling handler can see that.
trace <- list()

failed <- function(e) {
	.Call(wire_interrupts, FALSE)
	turn <- .Call(turn_state)
	message <- tryCatch(conditionMessage(e), error = function(x) "")
	if (turn$stage == "parse") {
		place <- parse_place(message, turn$code)
		return(paste0('"ok":false', error_fields(if (is.null(place$line)) "exception" else "syntax",
			"SyntaxError", place$text, message, place$line)))
	}
	if (turn$stage == "context")
		return(paste0('"ok":false', error_fields("value", class(e)[1], message)))
	.Call(turn_warnings)
	if (turn$stage == "run") finish_rest()
	paste0('"ok":false', describe(e, trace, turn))
}

interrupted <- function(e) {
	.Call(wire_interrupts, FALSE)
	.Call(turn_warnings)
	finish_rest()
	paste0('"ok":false', error_fields("interrupted", "interrupt", "The execution was interrupted"))
}

quitted <- function(e) {
	.Call(wire_interrupts, FALSE)
	.Call(turn_warnings)
	finish_rest()
	status <- suppressWarnings(as.integer(e$status)[1])
	if (is.na(status)) status <- 1L
	status <- status %% 256L
	turn <- .Call(turn_state)
	if (status == 0L && assigns(turn$exprs, turn$result_name) &&
		exists(turn$result_name, envir = main, inherits = FALSE))
		return(structure(',"exit_code":0', stored = TRUE))
	paste0('"ok":', if (status == 0L) "true" else "false", ',"exit_code":', status,
		if (status != 0L) error_fields("exception", "quit",
			paste("the code asked to exit with status", status)))
}

# A warning at the top level of the code has no function.
warned <- function(w) {
	call <- conditionCall(w)
	if (!is.null(call) && is_top(call, .Call(turn_state)$call)) {
		.Internal(.dfltWarn(paste(conditionMessage(w), collapse = "\n"), NULL))
		invokeRestart("muffleWarning")
	}
}

# Serves the host's executions, or the given messages. The handlers stay installed between executions.
turns <- function(lines = NULL) repeat {
	fields <- tryCatch(withCallingHandlers(.Call(turn_serve, lines), error = function(e) trace <<- sys.calls(),
			warning = warned),
		error = failed, interrupt = interrupted, cordon_quit = quitted)
	if (is.null(fields)) return()
	.Call(turn_reply, fields, isTRUE(attr(fields, "stored")))
	trace <<- list()
	if (!is.null(lines)) return()
}

# The code jumped to the top level: stop() with a condition that is not an error, or the restart "abort".
aborted <- function() {
	.Call(wire_interrupts, FALSE)
	if (.Call(turn_state)$stage == "idle") return()
	finish_rest()
	message <- sub("^Error( in [^\n]{1,200} )?: *", "", sub("\n$", "", .Call(turn_error)), perl = TRUE)
	if (!nzchar(message)) message <- "the code jumped to the top level"
	.Call(turn_reply, paste0('"ok":false', error_fields("exception", "abort", message)), FALSE)
}

# ---- starting

# The first line, in two parts; the token goes between them.
hello_parts <- function(template = FALSE) c('{"type":"hello","version":1,"token":"',
	sprintf('","guest":"r","language":"%s.%s"%s}', R.version$major, R.version$minor,
		if (template) ',"template":true' else ""))

hello <- function(template = FALSE) .Call(wire_send, paste(hello_parts(template), collapse = token))

welcome <- function() if (!.Call(turn_welcome)) quit_now(status = 0)

change_tools <- function(specs) {
	detach("cordon:tools", character.only = TRUE)
	install_tools(specs)
}

# For help(): text without the backspaces that make it bold on a printer.
show_pages <- function(files, header = NULL, title = NULL, delete.file = FALSE) for (f in files) {
	cat(gsub("_\b", "", readLines(f, warn = FALSE), fixed = TRUE), sep = "\n")
	if (delete.file) unlink(f)
}

# Replaces a function of a package, for its users and for the package itself.
set_in <- function(package, name, value) {
	environment(value) <- runtime
	attached <- paste0("package:", package)
	for (env in c(asNamespace(package), if (attached %in% search()) as.environment(attached))) {
		if (bindingIsLocked(name, env)) unlockBinding(name, env)
		assign(name, value, envir = env)
	}
}

# Set-up that does not depend on the session's options: a template does it once.
prepare_language <- function() {
	base::options(device = new_device, warn = 1L, keep.source = TRUE, browserNLdisabled = TRUE,
		showErrorCalls = FALSE)
	set_base("quit", quit_now)
	set_base("q", quit_now)
	set_base("browser", function(...) message("cordon: nobody can type into browser(): the code goes on"))
	set_base("file.choose", function(new = FALSE) stop("file choice cancelled: nobody can choose"))
	base::options(pager = show_pages)
	set_in("utils", "View", function(x, title) finish(as.data.frame(x), TRUE))
	setHook(packageEvent("parallel", "onLoad"), function(...) set_in("parallel", "detectCores",
		function(all.tests = FALSE, logical = TRUE) .Call(turn_cores)))
	install_tools(NULL)
}

# Runs typical executions, to touch the usual pages; their replies are discarded.
rehearse <- function(codes) {
	for (code in codes)
		turns(paste0('{"id":0,"validate":true,"code":', .Call(wire_quote, code), "}"))
	rm(list = intersect(c("x", "f", "i"), ls(main)), envir = main)
}

template <- function() {
	hello(TRUE)
	options <- .Call(wire_welcome)
	for (package in options$preload)
		tryCatch(suppressMessages(library(package, character.only = TRUE)), error = function(e)
			cat("cordon: preload of ", package, " failed: ", conditionMessage(e), "\n", sep = "",
				file = stderr()))
	prepare_language()
	# Otherwise R would compile these in the second execution of every session (60 ms).
	if (!is_compiled) for (name in ls(runtime)) {
		f <- get(name, envir = runtime)
		if (is.function(f)) assign(name, compiler::cmpfun(f), envir = runtime)
	}
	rehearse(c("1+1", "x <- c(a=1,b=2); mean(x)", "f <- function() stop('x'); f()", "data.frame(a=1:2)$a",
		"data.frame(a=1:2)", "list(a='b')", "for (i in 1:2) x <- i"))
	# Twice, so that old objects are in the oldest generation, which sessions rarely collect. Memory left by compiling
	# goes back a few pages at a time.
	for (i in seq_len(if (is_compiled) 2L else 6L)) gc()
	parts <- hello_parts()
	.Call(fork_serve, library_path("CORDON_LIBGUEST", "libguest.so"), parts[1], paste0(parts[2], "\n"))
}

serve <- function() {
	.Call(wire_interrupts, FALSE)
	if ("--template" %in% commandArgs(TRUE)) template() else {
		hello()
		prepare_language()
	}
	welcome()
	while (!.Call(turn_top, turns)) aborted()
	.Call(wire_flush)
	quit_now(status = 0)
}
serve()

})
