"""Gets a URL with libcurl through an HTTP/2 proxy (CONNECT), and prints a line of JSON.

    curl_client.py PROXY CA URL CREDENTIALS
"""
import hashlib
import json
import sys

import pycurl

# CURLPROXY_HTTPS2 of curl.h, for which pycurl has no name.
HTTPS2 = 3

proxy, ca, url, credentials = sys.argv[1:]
digest = hashlib.sha256()
curl = pycurl.Curl()
curl.setopt(pycurl.URL, url)
curl.setopt(pycurl.PROXY, proxy)
curl.setopt(pycurl.PROXYTYPE, HTTPS2)
curl.setopt(pycurl.HTTPPROXYTUNNEL, 1)
curl.setopt(pycurl.PROXY_CAINFO, ca)
curl.setopt(pycurl.PROXYUSERPWD, credentials)
curl.setopt(pycurl.TIMEOUT, 60)
curl.setopt(pycurl.WRITEFUNCTION, digest.update)
error = None
try:
    curl.perform()
except pycurl.error as failure:
    error = str(failure)
result = {
    "version": pycurl.version,
    "status": curl.getinfo(pycurl.RESPONSE_CODE),
    "sha256": digest.hexdigest(),
    "error": error,
}
print(json.dumps(result))
