# The audit log.
section <- "audit"

log_path <- file.path(scratch, "deep", "er", "audit.jsonl")
audited <- SecureSession$new(tools = list(securer_tool("add", "", function(a, b) a + b, list(a = "numeric", b = "numeric"))), audit_log = log_path)
same("the file and its folders are made", file.exists(log_path))
same("only its owner reads it", identical(format(file.mode(log_path)), "600"))
audited$execute("1 + 1")
audited$execute("add(2, 3)")
try(audited$execute("stop('boom')"), silent = TRUE)
try(audited$execute("while (TRUE) {}", timeout = 0.5), silent = TRUE)
audited$execute(paste(rep("1", 15000), collapse = "\n"))
audited$restart()
audited$close()
entries <- readLines(log_path)
field <- function(name, lines = entries) {
  found <- regmatches(lines, regexpr(sprintf('"%s": ?("([^"\\\\]|\\\\.)*"|[^,}]*)', name), lines))
  gsub('^"[^"]*": ?"?|"$', "", found)
}
events <- field("event")
of <- function(event) entries[events == event]
for (event in c("session_start", "execute_start", "execute_complete", "tool_call", "tool_result", "execute_error", "execute_timeout", "session_restart",
                "session_close")) {
  same(paste("there is the event", event), event %in% events)
}
same("every line has timestamp, event and session_id", all(lengths(list(field("timestamp"), field("event"), field("session_id"))) == length(entries)))
same("every line is an object of JSON", all(startsWith(entries, "{") & endsWith(entries, "}")))
same("the timestamp is ISO 8601", all(grepl("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$", field("timestamp"))))
same("there is one session_id", length(unique(field("session_id"))) == 1L)
same("the first is session_start", events[1] == "session_start")
same("execute_start has the code", field("code", of("execute_start"))[1] == "1 + 1")
same("execute_error has the text", grepl("boom", of("execute_error")[1], fixed = TRUE))
same("tool_call has the name and the arguments", field("tool", of("tool_call"))[1] == "add" && grepl('"args"', of("tool_call")[1], fixed = TRUE))
same("tool_result has the name", field("tool", of("tool_result"))[1] == "add")
same("long code is cut", {
  code <- field("code", of("execute_start"))[5]
  grepl("... [truncated]", code, fixed = TRUE) && nchar(gsub("\\\\n", "\n", code)) <= 10000 + nchar("... [truncated]")
})
order <- match(c("session_start", "execute_start", "tool_call", "tool_result", "session_close"), events)
same("the order is that of what happened", !is.unsorted(order))
same("without a path there is no file", {
  before <- list.files(scratch)
  with_session(function(s) s$execute("1"), audit_log = NULL)
  identical(list.files(scratch), before)
})
same("execute_r() passes audit_log on", {
  path <- file.path(scratch, "one.jsonl")
  execute_r("1 + 1", audit_log = path)
  all(c("session_start", "execute_start", "execute_complete", "session_close") %in% field("event", readLines(path)))
})
same("a log is continued", {
  path <- file.path(scratch, "one.jsonl")
  before <- length(readLines(path))
  execute_r("1 + 1", audit_log = path)
  length(readLines(path)) > before
})

section <- "audit/path"
same("a link is refused", {
  file.symlink(log_path, file.path(scratch, "link.jsonl"))
  fails(SecureSession$new(audit_log = file.path(scratch, "link.jsonl")), "audit_log path must not be a symlink")
})
for (device in c("/dev/null", "/dev/stderr")) same(paste(device, "is refused"), fails(SecureSession$new(audit_log = device), "audit_log path must not point to a device file"))
for (bad in list("", 5, c("a", "b"), NA_character_)) {
  same(paste("not a path:", deparse(bad)), fails(SecureSession$new(audit_log = bad), "audit_log path must be a non-empty character string"))
}
