# cran_install.R - installs packages with install.packages(), in the sandbox of one installation (docs/packages.md). The host
# sends it as code, with `request`; its value says what happened. The host believes none of it: it counts and copies the
# files itself.
local({
	r <- request
	lib <- file.path(path.expand("~"), "R", paste0(R.version$platform, "-library"),
		paste(R.version$major, sub("[.].*", "", R.version$minor), sep = "."))
	dir.create(lib, recursive = TRUE, showWarnings = FALSE)
	repo <- if (nzchar(r$folder)) paste0("file://", r$folder) else r$url
	names <- unlist(r$names)
	options(timeout = 60, repos = c(CRAN = repo), warn = 1, download.file.method = "libcurl", menu.graphics = FALSE)
	answer <- function(status, name = "", detail = "") list(status = status, name = name, detail = substr(detail, 1, 500))

	texts <- character()
	note <- function(w) {
		texts <<- c(texts, conditionMessage(w))
		message(conditionMessage(w))
		invokeRestart("muffleWarning")
	}
	unreachable <- "unable to access index|cannot open URL|cannot open compressed file"
	known <- tryCatch(withCallingHandlers(utils::available.packages(repos = repo, type = "source"), warning = note),
		error = function(e) { texts <<- c(texts, conditionMessage(e)); NULL })
	if (is.null(known) || (nrow(known) == 0 && any(grepl(unreachable, texts))))
		return(answer(if (any(grepl("403", texts))) "denied" else "unreachable", detail = paste(texts, collapse = " ")))
	missing <- setdiff(names, rownames(known))
	if (length(missing))
		return(answer("not_found", missing[[1]]))
	log <- tempfile()
	# The installer's own output is in a file: R CMD INSTALL is a process of its own.
	withCallingHandlers(tryCatch(utils::install.packages(names, lib = lib, repos = repo, type = "source", keep_outputs = dirname(log), quiet = FALSE),
		error = function(e) texts <<- c(texts, conditionMessage(e))), warning = note)
	outs <- list.files(dirname(log), pattern = "[.]out$", full.names = TRUE)
	said <- unlist(lapply(outs, readLines, warn = FALSE))
	cat(said, sep = "\n")
	done <- list.files(lib, pattern = "^[A-Za-z]")
	lacking <- setdiff(names, done)
	if (length(lacking)) {
		all <- c(texts, grep("ERROR|rror:|denied|not permitted|No space", said, value = TRUE))
		text <- paste(all, collapse = " ")
		status <- if (grepl("No space left|File too large|status was '413", text)) "full"
			else if (grepl("failed to map segment|cannot execute|Permission denied|not executable", text)) "no_exec"
			else if (any(grepl("403", texts))) "denied"
			else if (any(grepl("cannot open URL|download of package .* failed", texts))) "unreachable"
			else "failed"
		return(answer(status, lacking[[1]], text))
	}
	versions <- lapply(done, function(p) unname(read.dcf(file.path(lib, p, "DESCRIPTION"), "Version")[1, 1]))
	list(status = "ok", packages = structure(versions, names = done))
})
