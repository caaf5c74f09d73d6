"""One file for each LLM SDK: definitions out, calls in, results in the SDK's richest form.

An adapter is a pure function of guarded tools. It holds no client, and what is not a guarded tool it does not take. It
imports its SDK at its own top, and nothing else imports it.
"""
