"""Results of tools in fewer tokens, for agents that send their whole conversation with each request.

Begin with `request_results.py` (which results, and in which shape), then `result_reads.py` (`read_result`, whose calls
the gateway answers), `result_programs.py` (`run_program`, beside it) and `result_step.py` (all around the selection of
tools). What a wire format has to provide is in `formats/tool_results.py`.

request ─► results shaped ─► tools selected ─► provider ─► read_result? ─► part of the result ─► … ─► one answer
"""
