//! Mends what typify emits: takes out texts of the server and code that nobody needs, tells absent from
//! null and from empty, and names members as they are.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote};
use syn::{Attribute, Fields, File, Item, ItemEnum, ItemStruct, Type};

use super::outline::Outline;

/// What stands behind an undeclared member's field.
const FLATTEN: &str = "flatten";
/// How a member is read that must be there and may be null.
const NULLABLE: &str = "::std::option::Option::deserialize";

/// The refined code of one schema.
pub(super) fn refine(code: TokenStream, outline: &Outline) -> Result<TokenStream, &'static str> {
    let file: File = syn::parse2(code).map_err(|_| "typify wrote what is no Rust")?;
    let mut out = TokenStream::new();
    for item in file.items {
        match item {
            Item::Struct(mut item) => {
                strip_docs(&mut item.attrs);
                let needed = fields(&mut item, outline)?;
                item.to_tokens(&mut out);
                out.extend(constructor(&item, &needed));
            }
            Item::Enum(mut item) => {
                strip_docs(&mut item.attrs);
                for variant in &mut item.variants {
                    strip_docs(&mut variant.attrs);
                    variant
                        .fields
                        .iter_mut()
                        .for_each(|field| strip_docs(&mut field.attrs));
                }
                item.to_tokens(&mut out);
                out.extend(conversions(&item));
            }
            Item::Impl(item) if is_wanted(&item) => item.to_tokens(&mut out),
            // Conversions from texts, and the errors that they need.
            Item::Impl(_) | Item::Mod(_) => {}
            _ => return Err("typify wrote an item of another kind"),
        }
    }
    Ok(out)
}

/// Defaults are kept; conversions are made anew.
fn is_wanted(item: &syn::ItemImpl) -> bool {
    let last = item
        .trait_
        .as_ref()
        .and_then(|(path, _)| path.segments.last());
    last.is_some_and(|last| last.ident == "Default")
}

/// `From` what a variant holds, where no other holds the same.
fn conversions(item: &ItemEnum) -> TokenStream {
    let name = &item.ident;
    let held: Vec<_> = item
        .variants
        .iter()
        .filter_map(|variant| match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                Some((&variant.ident, &fields.unnamed.first()?.ty))
            }
            _ => None,
        })
        .collect();
    let text = |ty: &Type| ty.to_token_stream().to_string();
    held.iter()
        .filter(|(_, ty)| {
            held.iter()
                .filter(|(_, other)| text(other) == text(ty))
                .count()
                == 1
        })
        .map(|(variant, ty)| {
            quote! {
                impl ::std::convert::From<#ty> for #name {
                    fn from(value: #ty) -> Self {
                        Self::#variant(value)
                    }
                }
            }
        })
        .collect()
}

/// A field that a constructor asks for, in order.
type Needed = Vec<(syn::Ident, Type)>;

fn fields(item: &mut ItemStruct, outline: &Outline) -> Result<Needed, &'static str> {
    let owner = item.ident.to_string();
    let Fields::Named(named) = &mut item.fields else {
        item.fields
            .iter_mut()
            .for_each(|field| strip_docs(&mut field.attrs));
        return Ok(Vec::new());
    };
    let mut needed = Vec::new();
    for field in &mut named.named {
        let ident = field
            .ident
            .clone()
            .ok_or("typify wrote a field without a name")?;
        let said = Said::read(&field.attrs)?;
        if said.flatten {
            field.attrs = vec![serde_attribute(quote!(flatten))];
            continue;
        }
        let key = said.rename.unwrap_or_else(|| ident.to_string());
        let place = (owner.clone(), key.clone());
        let member = outline.renamed.get(&place).unwrap_or(&key);
        let mut parts = Vec::new();
        if *ident.to_string().trim_start_matches("r#") != *member {
            parts.push(quote!(rename = #member));
        }
        if said.default {
            let inner = inner_of_option(&field.ty).unwrap_or_else(|| field.ty.clone());
            let both = outline.absent_or_null.contains(&place);
            parts.push(quote!(default));
            parts.push(quote!(
                skip_serializing_if = "::std::option::Option::is_none"
            ));
            if both {
                parts.push(quote!(deserialize_with = "::mcp_broker::typed::present"));
            }
            let inner = if both && !is_value(&inner) {
                syn::parse_quote!(::std::option::Option<#inner>)
            } else {
                inner
            };
            field.ty = syn::parse_quote!(::std::option::Option<#inner>);
        } else {
            if said.null {
                parts.push(quote!(deserialize_with = #NULLABLE));
            }
            needed.push((ident, field.ty.clone()));
        }
        field.attrs.clear();
        if !parts.is_empty() {
            field.attrs.push(serde_attribute(quote!(#(#parts),*)));
        }
    }
    Ok(needed)
}

/// `new`, which takes what is required and leaves out the rest. Where nothing is, there is `Default`.
fn constructor(item: &ItemStruct, needed: &Needed) -> TokenStream {
    let Fields::Named(named) = &item.fields else {
        return TokenStream::new();
    };
    if needed.is_empty() || needed.len() == named.named.len() {
        return TokenStream::new();
    }
    let name = &item.ident;
    let (idents, types): (Vec<_>, Vec<_>) = needed.iter().cloned().unzip();
    let rest = named
        .named
        .iter()
        .filter_map(|field| field.ident.clone())
        .filter(|ident| !idents.contains(ident));
    quote! {
        impl #name {
            pub fn new(#(#idents: #types),*) -> Self {
                Self {
                    #(#idents,)*
                    #(#rest: ::std::default::Default::default(),)*
                }
            }
        }
    }
}

/// What typify's serde attributes say of a field.
#[derive(Default)]
struct Said {
    rename: Option<String>,
    default: bool,
    flatten: bool,
    /// Null is valid, and absence is not.
    null: bool,
}

impl Said {
    fn read(attributes: &[Attribute]) -> Result<Self, &'static str> {
        let mut said = Self::default();
        for attribute in attributes.iter().filter(|one| one.path().is_ident("serde")) {
            let read = attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") {
                    said.rename = Some(meta.value()?.parse::<syn::LitStr>()?.value());
                } else if meta.path.is_ident("default") {
                    said.default = true;
                    if meta.input.peek(syn::Token![=]) {
                        return Err(meta.error("a default of the schema"));
                    }
                } else if meta.path.is_ident(FLATTEN) {
                    said.flatten = true;
                } else if meta.path.is_ident("deserialize_with") {
                    let function = meta.value()?.parse::<syn::LitStr>()?.value();
                    if function != NULLABLE {
                        return Err(meta.error("unknown"));
                    }
                    said.null = true;
                } else if meta.path.is_ident("skip_serializing_if") {
                    meta.value()?.parse::<syn::LitStr>()?;
                    said.default = true;
                } else {
                    return Err(meta.error("unknown"));
                }
                Ok(())
            });
            read.map_err(|_| "typify wrote a serde attribute of another kind")?;
        }
        Ok(said)
    }
}

fn serde_attribute(tokens: TokenStream) -> Attribute {
    syn::parse_quote!(#[serde(#tokens)])
}

fn strip_docs(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| !attribute.path().is_ident("doc"));
}

/// `T` of `::std::option::Option<T>`.
fn inner_of_option(ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        syn::GenericArgument::Type(inner) if last.ident == format_ident!("Option") => {
            Some(inner.clone())
        }
        _ => None,
    }
}

/// Whether a type holds any JSON value, null included.
fn is_value(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Value"))
}
