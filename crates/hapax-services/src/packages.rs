//! Packages of other languages, fetched once by their own package managers, by name and version: no host is named here.
//!
//! Reads: what `mvn`, `pip`, `npm`, `go` and `apt-get` are set up to use. Writes: the cache.
//! Not here: what the packages are used for.

use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, said};
use crate::error::ServiceError;

/// The version of Apache Kafka that servers, Java's client and the tools are of.
pub const KAFKA_VERSION: &str = "4.3.1";
/// The default of older Mavens fails on these packages.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
const LOG4J: &str = "2.25.3";
/// kcat with what it needs beyond a small Debian.
const KCAT: [&str; 3] = ["kcat", "librdkafka1", "libyajl2"];
const LIBRDKAFKA: [&str; 2] = ["librdkafka1", "librdkafka-dev"];

/// The directory with Apache Kafka's jars: server, client, tools.
///
/// # Errors
/// If they are not in the cache and Maven cannot fetch them.
pub fn kafka_jars() -> Result<PathBuf, ServiceError> {
    let fetched = cache::keep(&format!("kafka-{KAFKA_VERSION}"), |work| {
        let pom = work.join("pom.xml");
        std::fs::write(&pom, project()).map_err(|error| error.to_string())?;
        let mut maven = Command::new("mvn");
        maven.args(["-q", "-B", "-f"]).arg(&pom).arg(format!("-Dmaven.repo.local={}", work.join("fetched").display()));
        maven.args([COPY, "-DincludeScope=runtime"]).arg(format!("-DoutputDirectory={}", work.join("jars").display()));
        said(&mut maven)?;
        std::fs::remove_dir_all(work.join("fetched")).map_err(|error| error.to_string())
    });
    fetched.map(|place| place.join("jars")).map_err(missing(
        "Apache Kafka's jars",
        "mvn",
        "maven and a JDK of version 17",
    ))
}

/// A Maven project whose only purpose are its dependencies.
fn project() -> String {
    let kafka = ["kafka_2.13", "kafka-tools"].map(|name| ("org.apache.kafka", name, KAFKA_VERSION));
    let logging = ["log4j-slf4j-impl", "log4j-core"].map(|name| ("org.apache.logging.log4j", name, LOG4J));
    let line = |(group, name, version): (&str, &str, &str)| {
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>\n"
        )
    };
    let lines: String = kafka.into_iter().chain(logging).map(line).collect();
    format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>hapax</groupId><artifactId>services</artifactId>\
         <version>1</version><packaging>pom</packaging>\n<dependencies>\n{lines}</dependencies></project>\n"
    )
}

/// A Python that has these packages, `["kafka-python==3.0.12"]`: the path of its interpreter.
///
/// # Errors
/// If they are not in the cache and pip cannot fetch them.
pub fn python(packages: &[&str]) -> Result<PathBuf, ServiceError> {
    let fetched = cache::keep(&format!("python-{:016x}", fingerprint(packages)), |work| {
        // Only the interpreter is used after the move: it finds its packages by its own place.
        said(Command::new("python3").args(["-m", "venv"]).arg(work))?;
        let mut pip = Command::new(work.join("bin/python"));
        said(pip.args(["-m", "pip", "install", "-q", "--disable-pip-version-check"]).args(packages)).map(drop)
    });
    fetched.map(|place| place.join("bin/python")).map_err(missing("Python's packages", "pip", "Python 3 with venv"))
}

/// The directory `node_modules` for a `package.json`.
///
/// # Errors
/// If it is not in the cache and npm cannot fetch it.
pub fn node_modules(package: &Path) -> Result<PathBuf, ServiceError> {
    let text = std::fs::read_to_string(package).unwrap_or_default();
    let fetched = cache::keep(&format!("node-{:016x}", fingerprint(&text)), |work| {
        std::fs::write(work.join("package.json"), &text).map_err(|error| error.to_string())?;
        let mut npm = Command::new("npm");
        // Without scripts: nothing is compiled, what the packages have in plain JavaScript is enough.
        npm.current_dir(work).args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]);
        said(&mut npm).map(drop)
    });
    fetched.map(|place| place.join("node_modules")).map_err(missing("Node's packages", "npm", "Node.js with npm"))
}

/// Builds the Go program of a directory to `output`. Modules and what is compiled of them are kept in the cache.
///
/// # Errors
/// If it does not build, or the modules cannot be fetched.
pub fn go_program(sources: &Path, output: &Path) -> Result<(), ServiceError> {
    let built = cache::home().and_then(|home| {
        let mut go = Command::new("go");
        go.current_dir(sources).env("GOMODCACHE", home.join("go-modules")).env("GOCACHE", home.join("go-build"));
        said(go.args(["build", "-o"]).arg(output).arg(".")).map(drop)
    });
    built.map_err(missing("a Go program", "go", "Go"))
}

/// kcat: a command line that runs it. Of the system, or unpacked from Debian's packages beside it.
///
/// # Errors
/// If it is neither installed nor in the cache, and apt cannot fetch it.
pub fn kcat() -> Result<Kcat, ServiceError> {
    if said(Command::new("kcat").arg("-V")).is_ok() {
        return Ok(Kcat { program: PathBuf::from("kcat"), libraries: None });
    }
    unpacked("kcat", &KCAT)
        .and_then(|place| Ok(Kcat { program: place.join("usr/bin/kcat"), libraries: Some(libraries(&place)?) }))
        .map_err(missing("kcat", "apt-get download", "kcat"))
}

/// librdkafka with its headers, unpacked from Debian's packages: what a C program is compiled with.
///
/// # Errors
/// If it is not in the cache and apt cannot fetch it.
pub fn librdkafka() -> Result<Librdkafka, ServiceError> {
    unpacked("librdkafka", &LIBRDKAFKA)
        .and_then(|place| Ok(Librdkafka { headers: place.join("usr/include"), libraries: libraries(&place)? }))
        .map_err(missing("librdkafka", "apt-get download", "librdkafka-dev"))
}

/// Debian's packages, side by side in one directory of the cache, not installed.
fn unpacked(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    cache::keep(name, |work| {
        said(Command::new("apt-get").current_dir(work).args(["download", "-q"]).args(packages))?;
        let files = std::fs::read_dir(work).map_err(|error| error.to_string())?.flatten();
        let is_package = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "deb");
        for package in files.map(|entry| entry.path()).filter(is_package) {
            said(Command::new("dpkg-deb").arg("-x").arg(&package).arg(work))?;
        }
        Ok(())
    })
}

/// The directory of libraries, which has the machine's kind in its name.
fn libraries(place: &Path) -> Result<PathBuf, String> {
    let mut folders = std::fs::read_dir(place.join("usr/lib")).map_err(|error| error.to_string())?.flatten();
    folders.next().map(|folder| folder.path()).ok_or_else(|| "the package holds no library".to_owned())
}

/// Where librdkafka is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Librdkafka {
    /// The directory for the compiler's `-I`.
    pub headers: PathBuf,
    /// The directory for its `-L`, and for `LD_LIBRARY_PATH`.
    pub libraries: PathBuf,
}

/// Where kcat is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kcat {
    /// The program.
    pub program: PathBuf,
    /// The directory for `LD_LIBRARY_PATH`, if it is not the system's.
    pub libraries: Option<PathBuf>,
}

fn missing(what: &'static str, by: &'static str, needs: &'static str) -> impl FnOnce(String) -> ServiceError {
    move |why| ServiceError::NotFetched { what, by, needs, why }
}

/// Stable for one compiler, which is all that a cache needs.
fn fingerprint(of: impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the jars are those of one version, and no host is named. Method: read the project.
    #[test]
    fn the_project_names_packages_and_versions_only() {
        let text = project();
        assert_eq!(text.matches(KAFKA_VERSION).count(), 2, "{text}");
        assert!(!text.contains("//"), "{text}");
    }

    /// Goal: a failure says what to do. Method: a directory in which nothing can be built.
    #[test]
    fn a_failure_says_what_is_missing_and_what_to_install() {
        let error = go_program(&std::env::temp_dir(), Path::new("/dev/null/x")).expect_err("there is no program");
        let text = error.to_string();
        assert!(text.contains("a Go program could not be had") && text.contains("Install Go"), "{text}");
    }
}
