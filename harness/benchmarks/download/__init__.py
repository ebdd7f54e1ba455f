"""Downloads of data sets from MLCommons' storage: resumable, and checked before a file gets its name."""

from harness.benchmarks.download.checked import FileState, State, check_files, md5_of
from harness.benchmarks.download.fetch import Fetched, fetch, local_states, megabytes
from harness.benchmarks.download.listing import Index, ListedFile, Listing, list_path, parse_listing
from harness.benchmarks.download.transfer import FileProgress, Tell, Told, Transfer, quiet
from harness.benchmarks.download.web import Web

__all__ = [
    "Fetched",
    "FileProgress",
    "FileState",
    "Index",
    "ListedFile",
    "Listing",
    "State",
    "Tell",
    "Told",
    "Transfer",
    "Web",
    "check_files",
    "fetch",
    "list_path",
    "local_states",
    "md5_of",
    "megabytes",
    "parse_listing",
    "quiet",
]
