"""Programs that a model writes over its tools: run in a sandbox, in a process that can be killed.

function_names ─► stubs                              what the model reads: a Python function for each tool
program ─► runner ─► sandbox_worker (its own process) the sandbox is pydantic's Monty; this package holds no other
              │ each call ─► the caller's gates ─► result_values ─► the program
              └─► program_run                        what was printed, which calls were made, where it failed
break_even                                           whether offering all this costs less than single calls

Only what a program prints, and its last value, leaves it.
"""
