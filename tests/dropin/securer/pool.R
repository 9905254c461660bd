# Pools.
section <- "pool"

pool_add <- securer_tool("add", "", function(a, b) a + b, list(a = "numeric", b = "numeric"))
two <- SecureSessionPool$new(size = 2, tools = list(pool_add), sandbox = FALSE)
same("it has its sessions", two$size() == 2 && two$available() == 2)
same("it runs code", identical(two$execute("1 + 1"), 2))
same("one execution after another", identical(c(two$execute("10 + 1"), two$execute("20 + 2"), two$execute("30 + 3")), c(11, 22, 33)) && two$available() == 2)
same("tools", identical(two$execute("add(3, 4)"), 7))
same("an error", fails(two$execute("stop('boom')"), "boom"))
same("it goes on after an error", identical(two$execute("42"), 42) && two$available() == 2)
same("a syntax error is refused", fails(two$execute("1 +"), "syntax error"))
same("a timeout", fails(two$execute("while (TRUE) {}", timeout = 1), "Execution timed out after 1 second"))
same("it goes on after a timeout", identical(two$execute("99"), 99))
same("format()", identical(format(two), "<SecureSessionPool> size=2 idle=2 busy=0"))
same("print()", any(grepl("SecureSessionPool", capture.output(print(two)))))
same("status()", identical(lapply(two$status(), as.integer), list(total = 2L, busy = 0L, idle = 2L, dead = 0L)))
same("output is the attribute output", identical(attr(two$execute("cat('hi\\n'); 1"), "output"), "hi"))
same("acquire_timeout with an idle session", identical(two$execute("42", acquire_timeout = 1), 42))
same("what an execution leaves, another finds", with_pool(function(p) {
  p$execute("left <- 5")
  identical(p$execute("left"), 5)
}, size = 1))
same("reset_between_uses takes it away", with_pool(function(p) {
  p$execute("left <- 5")
  fails(p$execute("left"), "not found")
}, size = 1, reset_between_uses = TRUE))
same("a dead session is replaced", {
  try(two$execute("tools::pskill(Sys.getpid(), 9)"), silent = TRUE)
  identical(two$execute("1 + 1"), 2) && two$available() == 2
})
differs("a dead session in status()", "after a timeout or a crash", {
  try(two$execute("tools::pskill(Sys.getpid(), 9)"), silent = TRUE)
  two$status()$dead == 0 && two$status()$total == 2
})
two$close()
same("close() ends all", two$size() == 0 && two$available() == 0)
same("close() twice", identical(two$close(), two))
same("a closed pool runs nothing", fails(two$execute("1"), "Pool is closed."))
same("format() of a closed pool", identical(format(two), "<SecureSessionPool> [closed]"))
same("status() of a closed pool", identical(lapply(two$status(), as.integer), list(total = 0L, busy = 0L, idle = 0L, dead = 0L)))

section <- "pool/size"
for (bad in list(0, -1, "two", NA)) same(paste("not a size:", deparse(bad)), fails(SecureSessionPool$new(size = bad), "at least 1"))
same("not more than 100", fails(SecureSessionPool$new(size = 101), "must not exceed 100"))
same("four by default", with_pool(function(p) p$size() == 4))

section <- "pool/busy"
one <- NULL
seen <- NULL
one <- SecureSessionPool$new(size = 1, tools = list(securer_tool("again", "", function(wait) one$execute("1", acquire_timeout = if (wait > 0) wait), list(wait = "numeric")),
                                                    securer_tool("look", "", function() {
                                                      seen <<- list(one$status(), format(one), one$available())
                                                      TRUE
                                                    })))
same("no idle session is an error at once", fails(one$execute("again(0)"), "All sessions are busy."))
same("and after acquire_timeout", fails(one$execute("again(0.3)"), "All sessions are busy."))
same("a busy session in status(), format() and available()", {
  one$execute("look()")
  identical(lapply(seen[[1]], as.integer), list(total = 1L, busy = 1L, idle = 0L, dead = 0L)) &&
    identical(seen[[2]], "<SecureSessionPool> size=1 idle=0 busy=1") && seen[[3]] == 0
})
same("it is idle afterwards", one$available() == 1 && identical(one$execute("1 + 1"), 2))
one$close()

section <- "pool/verbose"
pool_told <- messages_of(with_pool(function(p) p$execute("1"), size = 2, verbose = TRUE))
differs("its start", "each session of a pool", sum(grepl("started", pool_told)) == 1L && startsWith(pool_told[1], "[securer] Pool started"))
same("an execution", any(startsWith(pool_told, "[securer] Execution complete (")))
same("nothing by default", quiet(with_pool(function(p) p$execute("1"), size = 1)))
