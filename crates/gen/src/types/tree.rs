//! The module tree: one module per node and per tool, named after their paths.

use std::collections::BTreeMap;

use broker_model::NodePath;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

use super::generate::Generated;
use super::{TypedTool, names};

/// Modules, by the last segment of their paths.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Branch>);

#[derive(Debug)]
struct Branch {
    path: NodePath,
    /// The tool's items, and whether it has an output; `None` for a node.
    tool: Option<(TokenStream, bool)>,
    below: Tree,
}

impl Tree {
    /// Adds a tool at its path.
    pub(super) fn add(&mut self, path: &NodePath, args: Generated, output: Option<Generated>) {
        let mut here = self;
        let mut at = NodePath::root();
        let mut segments = path.as_str().split('/').skip(1).peekable();
        while let Some(segment) = segments.next() {
            at = at.join(segment).expect("a segment of a path is a segment");
            let branch = here.0.entry(segment.to_owned()).or_insert_with(|| Branch {
                path: at.clone(),
                tool: None,
                below: Self::default(),
            });
            if segments.peek().is_none() {
                let has_output = output.is_some();
                branch.tool = Some((tool(path, args, output), has_output));
                return;
            }
            here = &mut branch.below;
        }
    }

    /// `pub mod tools { … }`. The lints that it switches off are meant for hand-written code.
    pub(super) fn render(&self) -> TokenStream {
        let modules = self.modules();
        // The lints that apply depend on the crate and on its calls, so no lint can be expected.
        let switch_off = Ident::new("allow", Span::call_site());
        quote! {
            #[#switch_off(
                clippy::all,
                clippy::nursery,
                clippy::pedantic,
                clippy::restriction,
                dead_code,
                missing_debug_implementations,
                missing_docs,
                non_snake_case,
                unreachable_pub,
                reason = "generated for every tool, used or not, and named after it"
            )]
            pub mod tools {
                #modules
            }
        }
    }

    /// Every tool with the path of its module.
    pub(super) fn tools(&self) -> Vec<TypedTool> {
        let mut tools = Vec::new();
        self.collect("tools", &mut tools);
        tools.sort_by(|a, b| a.path.cmp(&b.path));
        tools
    }

    fn collect(&self, above: &str, tools: &mut Vec<TypedTool>) {
        for (name, branch) in self.named() {
            let module = format!("{above}::{name}");
            branch.below.collect(&module, tools);
            if let Some((_, has_output)) = &branch.tool {
                tools.push(TypedTool {
                    path: branch.path.clone(),
                    module,
                    has_output: *has_output,
                });
            }
        }
    }

    fn modules(&self) -> TokenStream {
        let modules = self.named().map(|(name, branch)| {
            let name = Ident::new(&name, Span::call_site());
            let tool = branch.tool.as_ref().map(|(tool, _)| tool);
            let below = branch.below.modules();
            let path = branch.path.as_str();
            let doc = match tool {
                Some(_) => format!(" The tool `{path}`."),
                None => format!(" The tools below `{path}`."),
            };
            quote! {
                #[doc = #doc]
                pub mod #name {
                    #tool
                    #below
                }
            }
        });
        quote!(#(#modules)*)
    }

    /// The branches by the names of their modules. If two collide, both get a digest: a new neighbour must not
    /// take the name of an old one.
    fn named(&self) -> impl Iterator<Item = (String, &Branch)> {
        let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
        for segment in self.0.keys() {
            *wanted.entry(names::module(segment)).or_default() += 1;
        }
        self.0.iter().map(move |(segment, branch)| {
            let name = names::module(segment);
            if wanted[&name] > 1 {
                let digest = names::digest("path", branch.path.as_str());
                (format!("{name}_{digest}"), branch)
            } else {
                (name, branch)
            }
        })
    }
}

fn tool(path: &NodePath, args: Generated, output: Option<Generated>) -> TokenStream {
    let path = path.as_str();
    let (args, is_typed) = (args.code, output.is_some());
    let output_type = if is_typed { quote!(Output) } else { quote!(()) };
    let output = output.map(|output| output.code);
    quote! {
        #[doc = " The path of the tool."]
        pub const PATH: &str = #path;
        #[doc = " The tool, for a call of the broker."]
        #[derive(Clone, Copy, Debug)]
        pub struct Tool;
        impl ::mcp_broker::typed::Tool for Tool {
            type Args = Args;
            type Output = #output_type;
            const PATH: &'static str = PATH;
            const HAS_OUTPUT: bool = #is_typed;
        }
        #args
        #output
    }
}
