# cordon_guest.R - the R runtime inside a session: speaks docs/wire.md on descriptor 3 and runs the code
# in the global environment. JSON, the wire and forking are in cordon_r.so beside this file.
#
#   R --vanilla --no-echo -f cordon_guest.R                    one session
#   R --vanilla --no-echo -f cordon_guest.R --args --template  warms up, then a session per spawn request
#   R --vanilla --no-echo -f cordon_guest.R --args --validate  checks the code on stdin, runs nothing
#
# Nothing here is a boundary: the code can reach all of it if it tries.
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

# R looks for programs by running `which` in a shell, and the package utils does not load where there is none:
# the same by looking. The host starts R with R_DEFAULT_PACKAGES=NULL, so that this comes first.
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
for (package in c("methods", "datasets", "utils", "grDevices", "graphics", "stats"))
	library(package, character.only = TRUE, warn.conflicts = FALSE)

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

# The same from what was parsed, without source references: for the code of an execution. The words are looked for
# first, because most code has none of them.
watched_words <- paste(c(gsub(".", "\\.", setdiff(sub("::.*$", "", watched), "q"), fixed = TRUE), "\\bq\\b"),
	collapse = "|")

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
	if (!grepl(watched_words, code, perl = TRUE)) return(character())
	found <- unique(calls_in(exprs, character()))
	if (!length(found)) return(character())
	sprintf("Code contains call to `%s()` which may be restricted by the sandbox", found)
}

# An end that came too soon is told as the line after the last: the last one is of more use.
parse_place <- function(message, code) {
	m <- regmatches(message, regexec("^<[^>]*>:([0-9]+):([0-9]+): ", message))[[1]]
	lines <- lengths(regmatches(code, gregexpr("\n", sub("\n+$", "", code), fixed = TRUE))) + 1L
	list(line = if (length(m)) min(as.integer(m[2]), max(lines, 1L)), column = if (length(m)) as.integer(m[3]),
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
		code <- rawToChar(bytes)
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
for (routine in c("wire_token", "wire_send", "wire_next", "wire_call", "wire_encode", "wire_output",
	"wire_flush", "wire_quote", "wire_text", "wire_context", "wire_random", "wire_address", "wire_interrupts", "wire_idle",
	"wire_mute", "wire_stdin", "fork_serve"))
	assign(routine, getNativeSymbolInfo(routine, dll))

if ("--validate" %in% commandArgs(TRUE)) {
	validate()
	return(invisible())
}

# ---- state of the session

token <- .Call(wire_token, "--template" %in% commandArgs(TRUE))
options <- list()
message_bytes <- 2^20
rpc_bytes <- 2^23
tool_bytes <- list()
result_name <- "result"
id <- "0"
calls <- 0
running <- FALSE
main <- globalenv()
runtime <- environment()

# What a value looks like when it is printed, with a bound; plots and conditions included.
printed <- function(x) {
	old <- base::options(max.print = 5000L, width = 80L)
	on.exit(base::options(old))
	text <- paste(utils::capture.output(print(x)), collapse = "\n")
	if (nchar(text, "bytes") > 65536) paste0(substr(text, 1, 60000), "...") else enc2utf8(text)
}

text_of <- function(x) {
	text <- .Call(wire_text, x)
	if (is.null(text)) tryCatch(printed(x), error = function(e) NULL) else text
}

# ---- rich outputs

emit <- function(mime, data, name = NULL) {
	if (!.Call(wire_output, id, mime, data, name, rpc_bytes))
		cat("cordon: an output of type ", mime, " was left out: too large\n", sep = "", file = stderr())
}

# Code that plots without opening a device gets one of ours: pages in files, sent when the code ends.
plot_files <- NULL
plot_devices <- integer()
plot_kind <- NULL
plot_number <- 0L
new_device <- function(...) {
	if (is.null(plot_kind))
		plot_kind <<- if (isTRUE(capabilities("cairo"))) "png" else "pdf"
	if (is.null(plot_files)) plot_files <<- tempfile("plot")
	plot_number <<- plot_number + 1L
	base <- sprintf("%s-%03d-", plot_files, plot_number)
	if (plot_kind == "png")
		grDevices::png(paste0(base, "%03d.png"), width = 960, height = 720, res = 120, type = "cairo")
	else
		grDevices::pdf(paste0(base, "%03d.pdf"), onefile = FALSE)
	plot_devices <<- c(plot_devices, grDevices::dev.cur())
}

send_plots <- function() {
	if (is.null(plot_files)) return()
	for (d in plot_devices) if (d %in% grDevices::dev.list()) grDevices::dev.off(d)
	files <- sort(Sys.glob(paste0(plot_files, "-*")))
	mime <- if (plot_kind == "png") "image/png" else "application/pdf"
	for (i in seq_along(files)) {
		emit(mime, readBin(files[i], "raw", file.size(files[i])), paste("plot", i))
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
		printed, rpc_bytes)
	if (is.character(json)) emit("application/json", json)
}

# ---- tools

words <- c(number = "numeric", numeric = "numeric", double = "numeric", string = "character",
	character = "character", boolean = "logical", logical = "logical", integer = "integer",
	array = "list", list = "list", object = "list", data.frame = "data.frame", bytes = "raw")
is_whole <- function(x) is.integer(x) || is.numeric(x) && all(is.finite(x)) && all(x == trunc(x))
checks <- list(numeric = is.numeric, character = is.character, logical = is.logical, integer = is_whole,
	list = function(x) is.list(x) || is.atomic(x) && !is.null(x), data.frame = is.data.frame, raw = is.raw)

tool_error <- function(message, call = NULL)
	structure(class = c("ToolError", "error", "condition"), list(message = message, call = call))

call_tool <- function(name, args) {
	if (!running) stop(tool_error("tools can only be called while an execution runs"))
	calls <<- calls + 1
	limit <- tool_bytes[[name]]
	answer <- .Call(wire_call, name, args, list(id, calls, if (is.null(limit)) message_bytes else limit, printed))
	if (identical(names(answer), "error")) stop(tool_error(answer[[1]]))
	answer[[1]]
}

make_tool <- function(spec) {
	name <- spec$name
	declared <- spec$args
	arg_names <- names(declared)
	if (isTRUE(spec$command) && all(arg_names %in% c("args", "stdin")))
		return(eval(bquote(function(..., stdin = "")
			.(call_tool)(.(name), list(args = lapply(list(...), as.character), stdin = stdin)))))
	kinds <- vapply(declared, function(d) {
		type <- if (is.list(d)) d$type else d
		type <- if (length(type)) type[[1]] else ""
		if (is.character(type) && type %in% names(words)) words[[type]] else ""
	}, "")
	optional <- vapply(declared, function(d) is.list(d) && identical(d$required, FALSE), NA)
	tests <- lapply(kinds, function(kind) checks[[kind]])
	run <- compiler::cmpfun(function(args) {
		if (any(optional)) args <- args[!(optional & vapply(args, is.null, NA))]
		for (n in names(args)) {
			test <- tests[[n]]
			if (!is.null(test) && !test(args[[n]]))
				stop(tool_error(sprintf("Tool '%s': argument '%s' must be %s, got %s", name, n,
					kinds[[n]], class(args[[n]])[1])))
			# A whole number where an integer is wanted travels as one.
			if (kinds[[n]] == "integer" && is.double(args[[n]]) && all(abs(args[[n]]) < 2^31))
				storage.mode(args[[n]]) <- "integer"
		}
		call_tool(name, args)
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
	env$help <- function(topic, ...) {
		name <- if (missing(topic)) "" else as.character(substitute(topic))[1]
		if (!is.null(docs[[name]])) cat(docs[[name]], sep = "\n")
		else eval.parent(as.call(c(quote(utils::help), as.list(match.call())[-1])))
	}
	lockEnvironment(env, bindings = TRUE)
	attached <- attach(env, name = "cordon:tools", warn.conflicts = FALSE)
	lockEnvironment(attached, bindings = TRUE)
}

# ---- one execution

quit_now <- function(save = "default", status = 0, runLast = TRUE) {
	if (running) signalCondition(structure(class = c("cordon_quit", "condition"),
		list(message = "quit", call = NULL, status = status)))
	.Internal(quit("no", as.integer(status), FALSE))
}

# Whether the code assigns the variable anywhere: then it wins, even with the same value as before.
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

top_call <- quote(eval(exprs[[i]], main))

frames_of <- function(calls) {
	# From the first frame of the code (after our own) to the one that signalled.
	start <- 0L
	for (i in seq_along(calls)) if (identical(calls[[i]], top_call)) start <- i
	calls <- calls[-seq_len(start)]
	names <- vapply(calls, function(x) paste(deparse(x[[1]], nlines = 1L), collapse = ""), "")
	calls[!names %in% c(".handleSimpleError", "h", "withCallingHandlers", "signalCondition") &
		!grepl("^\\(?(function|<)", names)]
}

describe <- function(e, calls, exprs, at) {
	message <- tryCatch(paste(conditionMessage(e), collapse = "\n"), error = function(x) "")
	name <- class(e)[1]
	kind <- if (inherits(e, "ToolError")) "tool" else
		if (grepl("^cannot allocate (memory|vector|buffer)|memory exhausted", message)) "memory" else "exception"
	call <- tryCatch(conditionCall(e), error = function(x) NULL)
	if (identical(call, top_call)) call <- NULL
	shown <- tryCatch(vapply(frames_of(calls), function(x) deparse(x, width.cutoff = 80L, nlines = 1L)[1], ""),
		error = function(x) character())
	head <- if (is.null(call)) paste0("Error: ", message) else
		paste0("Error in ", deparse(call, nlines = 1L)[1], " : ", message)
	if (length(shown) > 50) shown <- c(shown[1:20], "...", utils::tail(shown, 29))
	text <- paste(c(head, if (length(shown)) c("Traceback:", paste0("  ", seq_along(shown), ": ", shown))),
		collapse = "\n")
	line <- tryCatch(line_of(calls, exprs, at), error = function(x) NULL)
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

value_fields <- function(value, visible) {
	json <- .Call(wire_encode, value, printed, rpc_bytes)
	if (is.list(json))
		return(paste0('"ok":false', error_fields("value", "ValueError",
			paste("The result cannot cross:", json[[1]]))))
	text <- if (visible && !is.null(value)) text_of(value)
	paste0('"ok":true,"value":', json, if (!is.null(text))
		paste0(',"text":', .Call(wire_quote, text)))
}

change_env <- function(env) for (name in names(env))
	if (is.null(env[[name]])) Sys.unsetenv(name) else
		do.call(Sys.setenv, stats::setNames(list(as.character(env[[name]])), name))

# Where the execution is, for whoever describes its failure.
stage <- "idle"
code <- ""
exprs <- NULL
at <- 0L
trace <- list()
got <- NULL
has <- FALSE
warned <- character()

# NULL where it was removed.
where <- function() tryCatch(getwd(), error = function(e) NULL)
known_wd <- "/home/user" # as the host knows it

# What changed since the host was told, as a field of a result.
moved_field <- function() {
	now <- where()
	if (is.null(now) || identical(now, known_wd)) return(NULL)
	known_wd <<- now
	paste0(',"cwd":', .Call(wire_quote, now))
}

evaluate <- function(m) {
	stage <<- "parse"
	code <<- m$code
	trace <<- list()
	has <<- FALSE
	at <<- 0L
	warned <<- character()
	if (!is.null(m$env)) change_env(m$env)
	if (!is.null(m$stdin)) .Call(wire_stdin, m$stdin)
	if (is.character(m$directory)) {
		try(setwd(m$directory), silent = TRUE) # where it is not there any more: stay
		known_wd <<- where()
	}
	if (isTRUE(m$context)) {
		stage <<- "context" # what is wrong with a value is an error of this execution
		list2env(.Call(wire_context), envir = main)
		stage <<- "parse"
	}
	# Source references cost as much as a small execution, and one line needs none.
	exprs <<- parse(text = m$code, keep.source = grepl("\n|function|\\\\\\(", m$code))
	if (isTRUE(m$validate)) warned <<- advice_of(exprs, m$code)
	stores <- grepl(result_name, m$code, fixed = TRUE) && assigns(exprs, result_name)
	before <- .Call(wire_address, result_name, main)
	stage <<- "run"
	running <<- TRUE
	.Call(wire_interrupts, TRUE)
	withCallingHandlers(for (i in seq_along(exprs)) {
		at <<- i
		got <<- withVisible(eval(exprs[[i]], main))
		has <<- TRUE
	}, error = function(e) trace <<- sys.calls())
	.Call(wire_interrupts, FALSE)
	stage <<- "show"
	if (has && got$visible && is.object(got$value) || !is.null(plot_files)) finish(has && got$visible)
	wins <- .Call(wire_address, result_name, main)
	wins <- wins != 0 && (stores || wins != before)
	.Call(wire_interrupts, TRUE)
	fields <- if (wins) value_fields(get(result_name, envir = main), TRUE)
		else if (has) value_fields(got$value, got$visible)
		else '"ok":true'
	.Call(wire_interrupts, FALSE)
	fields
}

# Plots and tables. What fails here is said on stderr and costs nothing else.
finish <- function(visible) tryCatch({
	.Call(wire_interrupts, TRUE)
	if (visible) {
		if (inherits(got$value, c("ggplot", "trellis", "recordedplot", "grob", "gtable"))) print(got$value)
		if (is.data.frame(got$value)) send_frame(got$value)
	}
	send_plots()
	.Call(wire_interrupts, FALSE)
}, error = function(e) {
	.Call(wire_interrupts, FALSE)
	cat("cordon: no rich output: ", conditionMessage(e), "\n", sep = "", file = stderr())
})

failed <- function(e) {
	.Call(wire_interrupts, FALSE)
	message <- tryCatch(conditionMessage(e), error = function(x) "")
	if (stage == "parse") {
		place <- parse_place(message, code)
		return(paste0('"ok":false', error_fields(if (is.null(place$line)) "exception" else "syntax",
			"SyntaxError", place$text, message, place$line)))
	}
	if (stage == "context")
		return(paste0('"ok":false', error_fields("value", class(e)[1], message)))
	if (stage == "run") finish(FALSE)
	paste0('"ok":false', describe(e, trace, exprs, at))
}

interrupted <- function(e) {
	.Call(wire_interrupts, FALSE)
	send_plots()
	paste0('"ok":false', error_fields("interrupted", "interrupt", "The execution was interrupted"))
}

quitted <- function(e) {
	.Call(wire_interrupts, FALSE)
	finish(FALSE)
	stored <- grepl(result_name, paste(deparse(exprs), collapse = "\n"), fixed = TRUE) &&
		assigns(exprs, result_name) && exists(result_name, envir = main, inherits = FALSE)
	exited(e$status, stored)
}

exited <- function(status, wins) {
	status <- suppressWarnings(as.integer(status)[1])
	if (is.na(status)) status <- 1L
	status <- status %% 256L
	if (status == 0L && wins)
		return(sub('"ok":true', '"ok":true,"exit_code":0', value_fields(get(result_name, envir = main), TRUE)))
	paste0('"ok":', if (status == 0L) "true" else "false", ',"exit_code":', status,
		if (status != 0L) error_fields("exception", "quit",
			paste("the code asked to exit with status", status)))
}

execute <- function(m) {
	id <<- m$id
	calls <<- 0
	fields <- tryCatch(evaluate(m), error = failed, interrupt = interrupted, cordon_quit = quitted)
	running <<- FALSE
	.Call(wire_flush)
	advised <- if (length(warned)) paste0(',"warnings":[', paste(vapply(utils::head(warned, 64L), function(w)
		.Call(wire_quote, w), ""), collapse = ","), "]")
	line <- paste0('{"type":"result","id":', id, ",", fields, advised, moved_field(), "}")
	if (nchar(line, "bytes") >= rpc_bytes)
		line <- paste0('{"type":"result","id":', id, ',"ok":false', error_fields("value", "ValueError",
			sprintf("The result is too large (%.0f bytes, max %.0f)", nchar(line, "bytes"), rpc_bytes)), "}")
	.Call(wire_send, line)
}

# ---- starting

# The first line, in two parts: the token belongs between them.
hello_parts <- function(template = FALSE) c('{"type":"hello","version":1,"token":"',
	sprintf('","guest":"r","language":"%s.%s"%s}', R.version$major, R.version$minor,
		if (template) ',"template":true' else ""))

welcome <- function() {
	m <- .Call(wire_next)
	if (is.null(m) || !identical(m$type, "welcome")) quit_now(status = 0)
	options <<- m$options
}

hello <- function(template = FALSE) {
	.Call(wire_send, paste(hello_parts(template), collapse = token))
	welcome()
}

prepare <- function() {
	if (length(options$result_name)) result_name <<- options$result_name
	if (length(options$message_bytes)) message_bytes <<- as.double(options$message_bytes)
	if (length(options$rpc_bytes)) rpc_bytes <<- as.double(options$rpc_bytes)
	change_env(options$env)
	if (length(options$tools)) {
		detach("cordon:tools", character.only = TRUE)
		install_tools(options$tools)
	}
}

# What needs no options of the session: a template does it once for all.
prepare_language <- function() {
	base::options(device = new_device, warn = 1L, keep.source = TRUE, browserNLdisabled = TRUE)
	set_base("quit", quit_now)
	set_base("q", quit_now)
	install_tools(NULL)
}

# Executions that touch what every execution touches; what they say goes nowhere.
rehearse <- function(codes) {
	.Call(wire_mute, TRUE)
	for (code in codes)
		execute(list(type = "execute", id = "0", code = code, context = NULL, env = NULL, validate = TRUE))
	.Call(wire_mute, FALSE)
	rm(list = intersect(c("x", "f", "i"), ls(main)), envir = main)
}

seed <- function() {
	set.seed(.Call(wire_random))
	tempdir(check = TRUE)
}

template <- function() {
	hello(TRUE)
	for (package in options$preload)
		tryCatch(suppressMessages(library(package, character.only = TRUE)), error = function(e)
			cat("cordon: preload of ", package, " failed: ", conditionMessage(e), "\n", sep = "",
				file = stderr()))
	prepare_language()
	# Left to itself, R would compile these in the second execution of every session (60 ms).
	for (name in ls(runtime)) {
		f <- get(name, envir = runtime)
		if (is.function(f)) assign(name, compiler::cmpfun(f), envir = runtime)
	}
	rehearse(c("1+1", "x <- c(a=1,b=2); mean(x)", "f <- function() stop('x'); f()", "data.frame(a=1:2)$a",
		"data.frame(a=1:2)", "list(a='b')", "for (i in 1:2) x <- i"))
	for (i in 1:6) gc() # pages go back a few at a time
	parts <- hello_parts()
	.Call(fork_serve, library_path("CORDON_LIBGUEST", "libguest.so"), parts[1], paste0(parts[2], "\n"))
	seed()
	welcome()
	if (isTRUE(options$ahead) && .Call(wire_idle, 3L)) rehearse(rep("1+1", 8)) # take the page faults before anyone waits
}

serve <- function() {
	.Call(wire_interrupts, FALSE)
	if ("--template" %in% commandArgs(TRUE)) template() else {
		hello()
		prepare_language()
	}
	prepare()
	repeat {
		m <- .Call(wire_next)
		if (is.null(m) || identical(m$type, "exit")) break
		if (identical(m$type, "execute")) execute(m)
	}
	.Call(wire_flush)
	quit_now(status = 0)
}
serve()

})
