"""A pytest plugin: kazoo's harness makes certificates of X.509's first version, which rustls does not take, and Java does.

They are made of the third version. Nothing else of the suite is touched.
"""

import OpenSSL

made = OpenSSL.crypto.X509.__init__


def make(self, *args, **kwargs):
    made(self, *args, **kwargs)
    self.set_version(2)


OpenSSL.crypto.X509.__init__ = make
