"""Pure judgements: values of ``ctxscope.model`` in, values out. Nothing here reads an agent's files."""
