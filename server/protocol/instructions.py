"""What a client tells its model about this server before any tool is called."""

WORKFLOW = """\
kopt makes CUDA kernels faster and proves it. Order of work:
1. list_kernels: choose a kernel id. With that id (or by reading kopt://kernels/{id}) it shows \
the definition, how a candidate is written, and the reference source to start from.
2. compile: does it build; registers, spills, occupancy.
3. check_correctness: right against an fp64 oracle; on a GPU, or on sim, the CPU simulator.
4. benchmark: faster than the production baseline? Only the verdict faster is a speedup; on sim \
times are estimates.
5. profile: what limits it. search_docs: how to lift that limit. Change the candidate, back to 2.
6. beam_step: several candidates at once, with a memory that outlives your context.

Rules:
- A candidate is one .cu file of device code with a launch header. Save it in the workspace and \
pass path; pass source only where no file can be written.
- A candidate that fails is a normal reply: read status, diagnostics and evidence. Errors are for \
wrong calls and say what to do.
- Every reply ends with next, the sensible next step. detail="full" shows more.
- status running: call job_wait with the job_id, at once and again until it is over. Nothing is \
lost by a disconnect.
- Calls for one GPU take turns; parallel calls do not finish sooner. compile and sim run beside \
them.
"""

READ_ONLY = """\
kopt makes CUDA kernels faster and proves it. This server only inspects: it compiles and runs \
nothing.
- list_kernels: which kernels there are; with a kernel id, its definition and reference source.
- search_docs: production kernels, intrinsics, techniques, reference kernels.
- job_wait: the result of a job that another server runs or ran.
"""
