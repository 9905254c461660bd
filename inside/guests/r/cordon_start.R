# cordon_start.R - starts the R runtime beside it: compiled, if the build did that with this R (bundle.R; otherwise R
# compiles half of it in every process), else from source.
#
#   R --vanilla --no-echo -f cordon_start.R [--args --template or --validate]
local({
	if (!l10n_info()[["UTF-8"]])
		for (name in c("C.UTF-8", "C.utf8", "en_US.UTF-8"))
			if (nzchar(suppressWarnings(Sys.setlocale("LC_CTYPE", name)))) break
	args <- commandArgs(FALSE)
	file <- grep("^--file=", args, value = TRUE)
	here <- dirname(if (length(file)) substring(file[1L], 8L) else args[match("-f", args) + 1L])
	made <- file.path(here, "cordon_r.rds")
	runtime <- if (file.exists(made)) tryCatch(readRDS(made), error = function(e) NULL)
	is_compiled <- is.list(runtime) && identical(runtime$version, R.version.string)
	code <- if (is_compiled) runtime$code else parse(file.path(here, "cordon_guest.R"), keep.source = FALSE)[[1L]]
	eval(code, list2env(list(is_compiled = is_compiled), parent = globalenv()))
})
