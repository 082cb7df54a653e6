//! The files of a new crate: templates, and their values.

use super::spec::Spec;
use super::starting::Starting;
use crate::cli::schema;

/// Every file by its path in the crate.
pub(super) fn render(name: &str, spec: &Spec, starting: &Starting) -> Vec<(String, String)> {
    let fill = |template: &str| fill(template, name, spec, starting);
    let template = |file: &str, template: &str| (file.to_owned(), fill(template));
    vec![
        template("Cargo.toml", include_str!("../../new/Cargo.toml.in")),
        template("build.rs", include_str!("../../new/build.rs.in")),
        template("src/main.rs", include_str!("../../new/main.rs.in")),
        ("config.json".to_owned(), starting.text.clone()),
        ("config.schema.json".to_owned(), schema::CONFIG.to_owned()),
        template(".gitignore", include_str!("../../new/gitignore.in")),
        template(".dockerignore", include_str!("../../new/dockerignore.in")),
        template(
            ".github/workflows/broker.yml",
            include_str!("../../new/workflow.yml.in"),
        ),
        template(
            ".github/workflows/mcp.yml",
            include_str!("../../new/mcp.yml.in"),
        ),
        template(
            ".github/workflows/mcp-lock.yml",
            include_str!("../../new/mcp-lock.yml.in"),
        ),
        template(".gitlab-ci.yml", include_str!("../../new/gitlab-ci.yml.in")),
        template(
            ".githooks/pre-commit",
            include_str!("../../new/pre-commit.in"),
        ),
        template("Dockerfile", include_str!("../../new/Dockerfile.in")),
        (
            format!("{name}.service"),
            fill(include_str!("../../new/service.in")),
        ),
        template("README.md", include_str!("../../new/README.md.in")),
    ]
}

fn fill(template: &str, name: &str, spec: &Spec, starting: &Starting) -> String {
    let toolbox = spec.install("toolbox-mcp", "tests/servers/toolbox");
    let each = |line: fn(&str) -> String| -> String {
        starting
            .variables
            .iter()
            .map(|variable| line(variable))
            .collect()
    };
    let named: Vec<_> = starting
        .variables
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    let (build, copy, servers) = if starting.is_small {
        (
            format!("RUN {toolbox} --root /servers\n"),
            "COPY --from=build /servers/bin/ /usr/local/bin/\n",
            toolbox.clone(),
        )
    } else {
        let line = "# Install here what `command` in config.json runs (node, python, ...).";
        (String::new(), "", line.to_owned())
    };
    let secrets = each(|name| format!("          {name}: ${{{{ secrets.{name} }}}}\n"));
    let values = [
        ("name", name.to_owned()),
        ("broker", spec.dependency("crates/broker")),
        ("generator", spec.dependency("crates/gen")),
        (
            "install_generator",
            spec.install("broker-gen", "broker-gen"),
        ),
        ("install_servers", servers),
        ("docker_servers_build", build),
        ("docker_servers_copy", copy.to_owned()),
        ("docker_env", each(|name| format!(" -e {name}"))),
        (
            "export_variables",
            each(|name| format!("export {name}=...\n")),
        ),
        (
            "check_env",
            if secrets.is_empty() {
                String::new()
            } else {
                format!("        env:\n{secrets}")
            },
        ),
        ("lock_env", secrets),
        (
            "variables_section",
            if named.is_empty() {
                String::new()
            } else {
                format!(
                    "\nIt asks the environment for {}; `broker-gen lock`, `broker-gen check` and the broker need them.\n",
                    named.join(", ")
                )
            },
        ),
    ];
    let mut text = template.to_owned();
    for (key, value) in values {
        text = text.replace(&format!("{{{{{key}}}}}"), &value);
    }
    format!("{}\n", text.trim_end())
}
