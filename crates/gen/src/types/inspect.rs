//! Inspects the code before rustc: unique names, all expected types, and only crates that a broker depends
//! on.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{Fields, File, Item};

use super::outline::Outline;
use super::refine::REQUIRED;

/// The allowed first segments of paths.
const CRATES: [&str; 4] = ["std", "serde", "serde_json", "mcp_broker"];

/// The number of its items, or the reason why the code cannot be used.
pub(super) fn inspect(code: &TokenStream, outline: &Outline) -> Result<usize, &'static str> {
    let file: File = syn::parse2(code.clone()).map_err(|_| "the refined code is not valid Rust")?;
    let mut types = BTreeSet::new();
    for item in &file.items {
        let (name, members) = match item {
            Item::Struct(item) => (item.ident.to_string(), field_names(&item.fields)),
            Item::Enum(item) => {
                let variants = item.variants.iter();
                (
                    item.ident.to_string(),
                    variants.map(|one| one.ident.to_string()).collect(),
                )
            }
            _ => continue,
        };
        if !types.insert(name) {
            return Err("two types would have the same name");
        }
        let distinct: BTreeSet<&String> = members.iter().collect();
        if distinct.len() != members.len() {
            return Err("two members would have the same name");
        }
    }
    types.retain(|name| !name.starts_with(REQUIRED));
    if types != outline.types {
        return Err("typify used another name for a type");
    }
    if names_foreign_crate(code.clone()) {
        return Err("typify used another crate");
    }
    Ok(file.items.len())
}

fn field_names(fields: &Fields) -> Vec<String> {
    let named = fields.iter().filter_map(|field| field.ident.as_ref());
    named.map(ToString::to_string).collect()
}

/// Whether a path begins with another crate; `a::b` and `<a>::b` begin elsewhere.
fn names_foreign_crate(code: TokenStream) -> bool {
    let trees: Vec<TokenTree> = code.into_iter().collect();
    let is_colon =
        |at: usize| matches!(trees.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    trees.iter().enumerate().any(|(at, tree)| match tree {
        TokenTree::Group(group) => names_foreign_crate(group.stream()),
        TokenTree::Ident(ident) if at >= 2 && is_colon(at - 1) && is_colon(at - 2) => {
            let continues = at >= 3
                && match &trees[at - 3] {
                    // A keyword before a path is not part of it.
                    TokenTree::Ident(before) => !matches!(
                        before.to_string().as_str(),
                        "impl" | "for" | "as" | "dyn" | "mut"
                    ),
                    TokenTree::Punct(before) => before.as_char() == '>',
                    _ => false,
                };
            !continues && !CRATES.contains(&ident.to_string().as_str())
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn outline(types: &[&str]) -> Outline {
        Outline {
            types: types.iter().map(|name| (*name).to_owned()).collect(),
            ..Outline::default()
        }
    }

    #[test]
    fn type_code_with_duplicate_names_or_unknown_crates_is_refused() {
        let a = outline(&["A"]);
        assert_eq!(
            inspect(
                &quote!(
                    struct A {
                        x: ::std::vec::Vec<u8>,
                        y: u8,
                    }
                ),
                &a
            ),
            Ok(1)
        );
        assert!(
            inspect(
                &quote!(
                    struct A {
                        x: u8,
                        x: u8,
                    }
                ),
                &a
            )
            .is_err()
        );
        assert!(
            inspect(
                &quote!(
                    struct A;
                    struct A;
                ),
                &a
            )
            .is_err()
        );
        assert!(
            inspect(
                &quote!(
                    enum A {
                        X,
                        X,
                    }
                ),
                &a
            )
            .is_err()
        );
        assert!(
            inspect(
                &quote!(
                    struct B;
                ),
                &a
            )
            .is_err()
        );
        assert!(
            inspect(
                &quote!(
                    struct A {
                        x: ::uuid::Uuid,
                    }
                ),
                &a
            )
            .is_err()
        );
        assert!(inspect(&quote!(struct A; impl ::regress::X for A {}), &a).is_err());
    }
}
