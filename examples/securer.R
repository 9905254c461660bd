# A script for securer, migrated by changing one line.
library(cordon) # was: library(securer)

lookup <- securer_tool("lookup", "Looks up a price.", function(name) c(apple = 1.5, pear = 2)[[name]], list(name = "character"))
session <- SecureSession$new(tools = list(lookup), sandbox = TRUE, limits = default_limits(), max_executions = 10)
print(session$execute("sum(sapply(c('apple', 'pear'), lookup))"))
print(tryCatch(session$execute("lookup(42)"), error = function(e) "refused"))
session$close()
