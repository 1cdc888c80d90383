//! Finds libsoftmax and says how to link it: by SOFTMAX_DIR, then by pkg-config.
use std::env;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

const VARIABLES: [&str; 8] = [
    "SOFTMAX_DIR",
    "SOFTMAX_STATIC",
    "PKG_CONFIG",
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_LIBDIR",
    "PKG_CONFIG_SYSROOT_DIR",
    "CUDA_HOME",
    "CUDA_PATH",
];

/// What a linker is told: folders to search, and libraries in their order.
#[derive(Default)]
struct Flags {
    folders: Vec<PathBuf>,
    libraries: Vec<String>,
}

impl Flags {
    /// Reads linker flags as pkg-config prints them; what is not for the linker is left out.
    fn parse(text: &str) -> Flags {
        let mut flags = Flags::default();
        for word in text.split_whitespace() {
            if let Some(folder) = word.strip_prefix("-L") {
                flags.folders.push(PathBuf::from(folder));
            } else if word == "-pthread" {
                flags.libraries.push("pthread".into());
            } else if word == "-fopenmp" {
                flags.libraries.push("gomp".into());
            } else if let Some(name) = word.strip_prefix("-l") {
                flags.libraries.push(name.into());
            }
        }
        flags
    }
}

fn fail(message: &str) -> ! {
    eprintln!("softmax-sys: {}", message);
    exit(1);
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_static() -> bool {
    match variable("SOFTMAX_STATIC").as_deref() {
        None | Some("0") => false,
        Some("1") => true,
        Some(other) => fail(&format!("SOFTMAX_STATIC is {:?}; set it to 1 or 0", other)),
    }
}

/// lib, lib64 and Debian's lib/<triplet>, under a prefix.
fn library_folders(prefix: &Path) -> Vec<PathBuf> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    vec![
        prefix.join("lib"),
        prefix.join("lib64"),
        prefix.join(format!("lib/{}-linux-gnu", arch)),
    ]
}

/// `pkg-config --libs softmax`, or why there is none.
fn pkg_config(link_static: bool) -> Result<Flags, String> {
    let program = variable("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let mut command = Command::new(&program);
    command.args(["--print-errors", "--libs"]);
    // rustc itself reads a static library, and searches no folder of the system's for it: so
    // pkg-config must name those too.
    command.env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
    if link_static {
        command.arg("--static");
    }
    let output = command.arg("softmax").output();
    let output = output.map_err(|error| format!("{} cannot be run: {}", program, error))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr)
            .trim()
            .replace('\n', "; "));
    }
    Ok(Flags::parse(&String::from_utf8_lossy(&output.stdout)))
}

/// What the line Libs.private of softmax.pc says. Read here, because a machine that has only the
/// prefix need not have a pkg-config program.
fn private_libraries(pc: &Path) -> Option<Flags> {
    let text = std::fs::read_to_string(pc).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Libs.private:"))?;
    Some(Flags::parse(line))
}

/// What SOFTMAX_DIR holds.
fn from_prefix(prefix: &Path, link_static: bool) -> Flags {
    let name = if link_static {
        "libsoftmax.a"
    } else {
        "libsoftmax.so"
    };
    let folders = library_folders(prefix);
    let folder = match folders.iter().find(|folder| folder.join(name).is_file()) {
        Some(folder) => folder.clone(),
        None => fail(&format!(
            "SOFTMAX_DIR is {:?}, and {} is in none of its lib, lib64 and lib/<triplet>; set \
             SOFTMAX_DIR to the prefix that libsoftmax was installed to",
            prefix, name
        )),
    };
    let mut flags = Flags {
        folders: vec![folder.clone()],
        libraries: vec!["softmax".into()],
    };
    if link_static {
        let pc = folder.join("pkgconfig/softmax.pc");
        let private = match private_libraries(&pc) {
            Some(private) => private,
            None => fail(&format!(
                "a static link needs {}, which names the libraries behind libsoftmax.a",
                pc.display()
            )),
        };
        flags.folders.extend(private.folders);
        flags
            .libraries
            .extend(private.libraries.into_iter().filter(|l| l != "softmax"));
    }
    flags
}

/// Folders where the CUDA Toolkit keeps libcudart_static.a.
fn cuda_folders() -> Vec<PathBuf> {
    let roots = [
        variable("CUDA_HOME"),
        variable("CUDA_PATH"),
        Some("/usr/local/cuda".into()),
    ];
    let mut folders = Vec::new();
    for root in roots.iter().flatten() {
        for folder in [
            "lib64",
            "lib",
            "targets/x86_64-linux/lib",
            "targets/sbsa-linux/lib",
        ] {
            folders.push(Path::new(root).join(folder));
        }
    }
    folders
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in VARIABLES {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    let link_static = is_static();
    let mut flags = match variable("SOFTMAX_DIR") {
        Some(prefix) => from_prefix(Path::new(&prefix), link_static),
        None => pkg_config(link_static).unwrap_or_else(|error| {
            fail(&format!(
                "libsoftmax was not found. Set SOFTMAX_DIR to the prefix that it was installed to, \
                 or PKG_CONFIG_PATH to the folder of softmax.pc. (pkg-config: {})",
                error
            ))
        }),
    };
    if link_static
        && flags
            .libraries
            .iter()
            .any(|library| library == "cudart_static")
    {
        let is_there = |folder: &PathBuf| folder.join("libcudart_static.a").is_file();
        if !flags.folders.iter().any(is_there) {
            match cuda_folders().into_iter().find(is_there) {
                Some(folder) => flags.folders.push(folder),
                None => fail(
                    "libsoftmax.a needs libcudart_static.a of the CUDA Toolkit; set CUDA_HOME (or \
                     CUDA_PATH) to the toolkit's folder",
                ),
            }
        }
    }
    for folder in &flags.folders {
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
    // The order is the linker's: what a library needs comes after it.
    for library in &flags.libraries {
        let kind = if link_static && library == "softmax" {
            "static"
        } else {
            "dylib"
        };
        println!("cargo:rustc-link-lib={}={}", kind, library);
    }
    if let Some(folder) = flags.folders.first() {
        println!("cargo:libdir={}", folder.display());
    }
}
