"""The list of what is in the packages: SPDX 2.3 as JSON, read from the linker's own commands and from the pod's list of sources."""

import json
import os
import re
import time
import uuid

from . import portable, product
from .product import run, text_of


def static_packages(build):
    """Debian packages of which archives are linked in: those on the link lines of what is installed, and the C libraries."""
    lines = [line for line in run(["ninja", "-C", build, "-t", "commands", "cordon", "cordon-http", "src/net/cordon-gateway",
                                   "src/net/cordon-connect", "src/net/cordon-relay"]).splitlines()]
    archives = {word for line in lines for word in re.findall(r"(?<=\s)/\S+\.a(?=\s|$)", line) if not word.startswith(build)}
    found = {portable.owner(path) for path in archives}
    if any("-static" in line for line in lines):
        found |= {portable.owner(run(["gcc", f"-print-file-name={name}"]).strip()) for name in ("libc.a", "libgcc.a")}
    if any("musl-gcc" in line for line in lines):
        found.add("musl-dev")
    return sorted(found)


def pod_sources():
    rows = [line.split() for line in text_of("inside/pod/image/sources").splitlines() if line.strip() and not line.startswith("#")]
    return [(row[0], row[1], row[2]) for row in rows]


def spdx_id(kind, name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}")


def package(ref, name, version, purl, **more):
    return {"SPDXID": ref, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}], **more}


def debian(name):
    """A binary package of this machine, with the source that it was built from."""
    version, source = run(["dpkg-query", "-W", "-f=${Version} ${source:Package}@${source:Version}", name]).split(" ")
    arch = run(["dpkg", "--print-architecture"]).strip()
    return package(spdx_id("Debian", name), name, version, f"pkg:deb/debian/{name}@{quote(version)}?arch={arch}",
                   sourceInfo=f"built from {source}", supplier="Organization: Debian")


def quote(version):
    return version.replace("+", "%2B").replace(":", "%3A")


def document(static, carried, image, has_pod):
    version = product.version()
    arch = run(["dpkg", "--print-architecture"]).strip()
    own = {"licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "supplier": "Organization: The Cordon authors"}
    packages = [package("SPDXRef-cordon", "cordon", version, f"pkg:generic/cordon@{version}?arch={arch}", **own)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-cordon")]
    for name in sorted({*static, *carried, *image}):
        packages.append(debian(name))
    relations += [("SPDXRef-cordon", "STATIC_LINK", spdx_id("Debian", name)) for name in static]
    # The wheel, the tarball and the package for npm contain them; the Debian packages depend on them.
    relations += [("SPDXRef-cordon", "DYNAMIC_LINK", spdx_id("Debian", name)) for name in carried]
    packages.append(package("SPDXRef-cordon-oci", "cordon-oci", version, f"pkg:generic/cordon-oci@{version}?arch={arch}", **own))
    relations += [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-cordon-oci"), ("SPDXRef-cordon-oci", "CONTAINS", "SPDXRef-cordon")]
    relations += [("SPDXRef-cordon-oci", "CONTAINS", spdx_id("Debian", name)) for name in image]
    if has_pod:
        packages.append(package("SPDXRef-cordon-pod", "cordon-pod", version, f"pkg:generic/cordon-pod@{version}?arch={arch}", **own))
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-cordon-pod"))
        for name, source_version, digest in pod_sources():
            ref = spdx_id("Source", name)
            packages.append(package(ref, name, source_version, f"pkg:deb/debian/{name}@{quote(source_version)}?arch=source",
                                    comment=f"compiled to WebAssembly; its .dsc or tarball has SHA-256 {digest}"))
            relations.append(("SPDXRef-cordon-pod", "CONTAINS", ref))
    body = {"packages": packages,
            "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations]}
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(product.epoch()))
    space = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True) + created)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"cordon-{version}",
            "documentNamespace": f"urn:uuid:{space}", "creationInfo": {"created": created, "creators": ["Tool: cordon-tools-dist"]}, **body}


def make(out, static, carried, image, has_pod):
    path = os.path.join(out, f"cordon-{product.version()}.spdx.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document(static, carried, image, has_pod), file, indent=1)
        file.write("\n")
    return [path]
