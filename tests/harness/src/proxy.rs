//! Reverse proxies in front of a broker: nginx, Caddy and HAProxy with the directives of a page.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::program::{Run, wait_until};

/// The folder of nginx, which is not in `PATH` of every user.
const SYSTEM_PROGRAMS: &str = "/usr/sbin";

/// A running proxy; killed when dropped.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    address: String,
    folder: TempDir,
}

impl Proxy {
    /// Starts nginx with these directives of `http` and of `server`.
    pub fn nginx(http: &str, server: &str) -> Self {
        // One process, so that its end is the end of the proxy.
        let args = ["-p", ".", "-e", "stderr", "-c", "proxy.conf"];
        Self::start("nginx", &args, |port| {
            format!(
                "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr warn;\nevents {{}}\nhttp {{\n\
                 access_log off;\nclient_body_temp_path body;\nproxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\n\
                 uwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n{http}\nserver {{\nlisten 127.0.0.1:{port};\n{server}\n}}\n}}\n"
            )
        })
    }

    /// Starts Caddy with these directives of a site.
    pub fn caddy(site: &str) -> Self {
        let args = ["run", "--config", "proxy.conf", "--adapter", "caddyfile"];
        Self::start("caddy", &args, |port| {
            format!(
                "{{\nadmin off\nauto_https off\n}}\nhttp://:{port} {{\nbind 127.0.0.1\n{site}\n}}\n"
            )
        })
    }

    /// Starts HAProxy with these sections behind the defaults; `bind` in them is replaced by the address of the proxy.
    pub fn haproxy(sections: &str) -> Self {
        let args = ["-f", "proxy.conf"];
        Self::start("haproxy", &args, |port| {
            let mut lines = String::new();
            for line in sections.lines() {
                match line.trim_start().starts_with("bind ") {
                    true => lines.push_str(&format!("    bind 127.0.0.1:{port}\n")),
                    false => lines.push_str(&format!("{line}\n")),
                }
            }
            format!("global\n    maxconn 200\n{lines}")
        })
    }

    fn start(name: &str, args: &[&str], config: impl FnOnce(u16) -> String) -> Self {
        let program = program(name);
        let folder = TempDir::new().expect("a folder can be made");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = free.local_addr().expect("it has an address");
        fs::write(folder.path().join("proxy.conf"), config(address.port()))
            .expect("the file can be written");
        let log = fs::File::create(folder.path().join("log")).expect("the file can be written");
        let run = Run::new(&program).args(args).folder(folder.path());
        let run = ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"]
            .into_iter()
            .fold(run, |run, name| run.env(name, folder.path()));
        drop(free);
        let child = run.spawn_with_outputs(Stdio::null(), log.into());
        let mut proxy = Self {
            child,
            address: address.to_string(),
            folder,
        };
        wait_until("the proxy listens", || {
            let ended = proxy.child.try_wait().expect("its state can be read");
            assert!(ended.is_none(), "{name} ended: {}", proxy.log());
            TcpStream::connect(&proxy.address).is_ok()
        });
        proxy
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its output on standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // A proxy that already ended cannot be killed again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program of a proxy.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from(SYSTEM_PROGRAMS)]);
    let mut programs = folders.map(|folder| folder.join(Path::new(name)));
    let found = programs.find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("{name} is not installed; run tests/proxies/install"))
}
