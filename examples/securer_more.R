# The rest of what a securer script does: streaming, a hook, an audit log, a pool, one shots, checks ahead.
library(cordon) # was: library(securer)

log <- tempfile(fileext = ".jsonl")
session <- SecureSession$new(sandbox = TRUE, audit_log = log, sanitize_errors = TRUE,
                             pre_execute_hook = function(code) !grepl("Sys.setenv", code, fixed = TRUE))
value <- session$execute("for (i in 1:3) cat('step ', i, '\\n', sep = ''); sum(1:3)", output_handler = function(line) cat("heard: ", line, "\n", sep = ""))
print(as.numeric(value))
print(attr(value, "output")[1])
cat(tryCatch(session$execute("Sys.setenv(A = 1)"), error = conditionMessage), "\n", sep = "")
cat(tryCatch(session$execute("repeat {}", timeout = 0.5), error = conditionMessage), "\n", sep = "")
session$restart()
print(session$is_alive())
session$close()
print(length(readLines(log)) > 4)

pool <- SecureSessionPool$new(size = 2, reset_between_uses = TRUE)
print(vapply(1:3, function(i) pool$execute(sprintf("%d^2", i), acquire_timeout = 30), 0))
print(pool$size())
pool$close()

print(execute_r("nrow(subset(mtcars, cyl == 4))", timeout = 60))
print(with_secure_session(function(s) { s$execute("x <- 20"); s$execute("x + 1") }))
print(validate_code("system('ls')")$warnings)
