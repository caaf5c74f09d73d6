"""The commented settings that `mcprelay init` writes."""

TEMPLATE = """\
# mcprelay.toml: the MCP servers that this application uses, and what of them its model may see.
#
# Nothing is sent to a server before its table says with `allow` what may be used of it. Review what a server offers
# with `mcprelay lock NAME`, which records it in mcprelay.lock; what changes after that is withheld until it is reviewed
# again.
#
# ${NAME} is a variable of the environment, ${NAME:-default} one that may be missing.

# A server that is reached over HTTP:
#
# [servers.github]
# url       = "https://mcp.example.com/mcp"
# token     = "${GITHUB_TOKEN}"                  # shown nowhere; or auth = "oauth": what `mcprelay login github` stored
# allow     = ["list_issues", "create_issue"]    # names, exactly as the server writes them; "*" is every tool
# timeout   = 30                                 # seconds for a call
# cache     = 300                                # seconds that its lists are kept; 0 is not at all
# prefix    = "gh"                               # gh__create_issue instead of github__create_issue
# headers   = { "X-Team" = "search" }
# transport = "http"                             # or "sse" for servers that speak the old transport only
# proxy     = "http://proxy.example:3128"        # or trust_env = true: the proxies that the environment names
# ca_file   = "ca.pem"                           # authorities to trust; client_cert, client_key: what is shown to it

# A server that is started as a process. No shell takes part; it gets PATH and a few more variables that are safe,
# those named in `inherit`, and those in `env`.
#
# [servers.files]
# command      = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/data"]
# allow        = ["read_file", "list_directory"]
# env          = { LOG_LEVEL = "warn" }
# inherit      = ["SSH_AUTH_SOCK"]
# prompts      = ["summary"]                     # prompts and resources have lists of their own
# resources    = ["file:///srv/data/README.md"]
# instructions = false                           # whether the server's own instructions may be shown
# pins         = "required"                      # offer what is in the lock file only, though nothing is there yet; or
#                                                # "optional": offer tools that are not in it, too; or a table of
#                                                # digests: { read_file = "sha256:…" }
#
# [servers.files.limits]
# result_bytes = 65536

[limits]
# What is larger is refused whole, never cut.
# result_bytes  = 262144     # text of one result
# result_tokens = 20000      # the same in tokens, where the application gives a counter
# media_bytes   = 5242880    # one picture, sound or file
# media_pixels  = 64000000   # one picture, unpacked
# run_bytes     = 2000000    # all text of all servers in one run

[cache]
# path     = ".mcprelay/lists.sqlite"   # lists are kept between runs; without it only in memory
# hintless = 60                         # seconds that lists are kept whose server says nothing about it
"""
