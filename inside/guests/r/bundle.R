# bundle.R OUTPUT FILE - compiles the R runtime with the R that runs this, for cordon_start.R.
args <- commandArgs(TRUE)
code <- parse(args[2L], keep.source = FALSE, encoding = "UTF-8")
stopifnot(length(code) == 1L)
saveRDS(list(version = R.version.string, code = compiler::compile(code[[1L]], options = list(suppressAll = TRUE))),
	args[1L], compress = FALSE)
