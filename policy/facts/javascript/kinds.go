package javascript

import (
	"unsafe"

	ts "github.com/tree-sitter/go-tree-sitter"

	"github.com/caisson-dev/caisson/internal/syntaxtree"
)

// kind names a grammar node in one vocabulary for JavaScript, TypeScript and TSX, whose grammars number their nodes
// differently.
type kind uint8

// The kinds that the walk tells apart. Everything else is kOther and is walked for what it contains.
const (
	kOther kind = iota
	kToken
	kSkip // types, comments and punctuation: dropped while flattening
	kError
	kMissing

	kIdentifier
	kProperty
	kPrivate
	kShorthand
	kShorthandPattern
	kString
	kFragment
	kEscape
	kTemplate
	kSubstitution
	kNumber
	kRegex
	kTrue
	kFalse
	kNull
	kUndefined
	kThis
	kSuper
	kImport
	kMeta

	kArray
	kObject
	kPair
	kSpread
	kComputed
	kMethod
	kFunction
	kFunctionDecl
	kArrow
	kClass
	kClassDecl
	kClassBody
	kClassHeritage
	kExtends
	kField
	kStaticBlock
	kParams
	kRest
	kAssignPattern
	kObjectAssignPattern
	kObjectPattern
	kArrayPattern
	kPairPattern
	kParam
	kDecorator

	kCall
	kNew
	kArguments
	kMember
	kSubscript
	kBinary
	kUnary
	kUpdate
	kAssign
	kAugmented
	kTernary
	kSequence
	kParen
	kAwait
	kYield
	kAs
	kCast

	kProgram
	kExpression
	kDeclaration
	kDeclarator
	kImportStatement
	kImportClause
	kNamedImports
	kImportSpecifier
	kNamespaceImport
	kImportRequire
	kExport
	kExportClause
	kExportSpecifier
	kBlock
	kIf
	kElse
	kFor
	kForIn
	kWhile
	kDo
	kTry
	kCatch
	kFinally
	kSwitch
	kSwitchBody
	kCase
	kDefault
	kReturn
	kThrow
	kBreak
	kContinue
	kLabeled
	kWith
	kEmpty
	kEnum
	kEnumBody
	kEnumAssign
	kNamespace
	kAmbient
	kImportAlias
)

var kindNames = map[string]kind{
	"ERROR": kError,

	"identifier": kIdentifier, "property_identifier": kProperty, "statement_identifier": kProperty,
	"private_property_identifier": kPrivate, "shorthand_property_identifier": kShorthand,
	"shorthand_property_identifier_pattern": kShorthandPattern, "string": kString, "string_fragment": kFragment,
	"escape_sequence": kEscape, "template_string": kTemplate, "template_substitution": kSubstitution,
	"number": kNumber, "regex": kRegex,
	"true": kTrue, "false": kFalse, "null": kNull, "undefined": kUndefined, "this": kThis, "super": kSuper,
	"import": kImport, "meta_property": kMeta,

	"array": kArray, "object": kObject, "pair": kPair, "spread_element": kSpread, "computed_property_name": kComputed,
	"method_definition": kMethod, "function_expression": kFunction, "generator_function": kFunction,
	"function_declaration": kFunctionDecl, "generator_function_declaration": kFunctionDecl, "arrow_function": kArrow,
	"class": kClass, "class_declaration": kClassDecl, "abstract_class_declaration": kClassDecl, "class_body": kClassBody,
	"class_heritage": kClassHeritage, "extends_clause": kExtends, "field_definition": kField,
	"public_field_definition": kField, "class_static_block": kStaticBlock, "formal_parameters": kParams,
	"rest_pattern": kRest, "assignment_pattern": kAssignPattern, "object_assignment_pattern": kObjectAssignPattern,
	"object_pattern": kObjectPattern, "array_pattern": kArrayPattern, "pair_pattern": kPairPattern,
	"required_parameter": kParam, "optional_parameter": kParam, "decorator": kDecorator,

	"call_expression": kCall, "new_expression": kNew, "arguments": kArguments, "member_expression": kMember,
	"subscript_expression": kSubscript, "binary_expression": kBinary, "unary_expression": kUnary,
	"update_expression": kUpdate, "assignment_expression": kAssign, "augmented_assignment_expression": kAugmented,
	"ternary_expression": kTernary, "sequence_expression": kSequence, "parenthesized_expression": kParen,
	"await_expression": kAwait, "yield_expression": kYield, "as_expression": kAs, "satisfies_expression": kAs,
	"non_null_expression": kAs, "instantiation_expression": kAs, "type_assertion": kCast,

	"program": kProgram, "expression_statement": kExpression, "lexical_declaration": kDeclaration,
	"variable_declaration": kDeclaration, "using_declaration": kDeclaration, "variable_declarator": kDeclarator,
	"import_statement": kImportStatement, "import_clause": kImportClause, "named_imports": kNamedImports,
	"import_specifier": kImportSpecifier, "namespace_import": kNamespaceImport, "import_require_clause": kImportRequire,
	"export_statement": kExport, "export_clause": kExportClause, "export_specifier": kExportSpecifier, "statement_block": kBlock, "if_statement": kIf, "else_clause": kElse,
	"for_statement": kFor, "for_in_statement": kForIn, "while_statement": kWhile, "do_statement": kDo,
	"try_statement": kTry, "catch_clause": kCatch, "finally_clause": kFinally, "switch_statement": kSwitch,
	"switch_body": kSwitchBody, "switch_case": kCase, "switch_default": kDefault, "return_statement": kReturn,
	"throw_statement": kThrow, "break_statement": kBreak, "continue_statement": kContinue,
	"labeled_statement": kLabeled, "with_statement": kWith, "empty_statement": kEmpty, "enum_declaration": kEnum,
	"enum_body": kEnumBody, "enum_assignment": kEnumAssign, "internal_module": kNamespace, "module": kNamespace,
	"ambient_declaration": kAmbient, "import_alias": kImportAlias,

	"comment": kSkip, "html_comment": kSkip, "hash_bang_line": kSkip, "type_annotation": kSkip, "type_arguments": kSkip,
	"type_parameters": kSkip, "interface_declaration": kSkip, "type_alias_declaration": kSkip,
	"function_signature": kSkip, "method_signature": kSkip, "abstract_method_signature": kSkip,
	"accessibility_modifier": kToken, "override_modifier": kSkip, "implements_clause": kSkip, "optional_chain": kSkip,
	"asserts_annotation": kSkip, "type_predicate_annotation": kSkip, "index_signature": kSkip,
}

// leafKinds have no children that the walk needs.
var leafKinds = [256]bool{
	kToken: true, kIdentifier: true, kProperty: true, kPrivate: true, kShorthand: true, kShorthandPattern: true,
	kString: true, kFragment: true, kEscape: true, kNumber: true, kRegex: true, kTrue: true, kFalse: true,
	kNull: true, kUndefined: true, kThis: true, kSuper: true, kImport: true,
}

// noFields are kinds whose children need no field to be told apart.
var noFields = [256]bool{
	kProgram: true, kBlock: true, kArguments: true, kArray: true, kObject: true, kTemplate: true, kSubstitution: true,
	kExpression: true, kParen: true, kSpread: true, kAwait: true, kReturn: true, kParams: true, kObjectPattern: true,
	kArrayPattern: true, kDeclaration: true, kNamedImports: true, kImportClause: true, kComputed: true, kElse: true,
	kClassBody: true, kSwitchBody: true, kSequence: true,
}

// field names the role of a node in its parent.
type field uint8

const (
	fNone field = iota
	fAlias
	fAlternative
	fArgument
	fArguments
	fBody
	fCondition
	fConsequence
	fConstructor
	fDeclaration
	fDecorator
	fFinalizer
	fFunction
	fHandler
	fIncrement
	fIndex
	fInitializer
	fKey
	fKind
	fLeft
	fName
	fObject
	fOperator
	fParameter
	fParameters
	fPattern
	fProperty
	fRight
	fSource
	fValue
)

var fieldNames = map[string]field{
	"alias": fAlias, "alternative": fAlternative, "argument": fArgument, "arguments": fArguments, "body": fBody,
	"condition": fCondition, "consequence": fConsequence, "constructor": fConstructor, "declaration": fDeclaration,
	"decorator": fDecorator, "finalizer": fFinalizer, "function": fFunction, "handler": fHandler,
	"increment": fIncrement, "index": fIndex, "initializer": fInitializer, "key": fKey, "kind": fKind, "left": fLeft,
	"name": fName, "object": fObject, "operator": fOperator, "parameter": fParameter, "parameters": fParameters,
	"pattern": fPattern, "property": fProperty, "right": fRight, "source": fSource, "value": fValue,
}

// grammar is one tree-sitter language with its numbering translated to kinds and fields.
type grammar struct {
	parser *syntaxtree.Language
	kinds  []kind
	fields []field
}

func newGrammar(grammarOf unsafe.Pointer) *grammar {
	language := ts.NewLanguage(grammarOf)
	g := &grammar{parser: syntaxtree.New(grammarOf)}
	g.kinds = make([]kind, language.NodeKindCount())
	for id := range g.kinds {
		name := language.NodeKindForId(uint16(id))
		switch {
		case language.NodeKindIsNamed(uint16(id)):
			g.kinds[id] = kindNames[name]
		case keptTokens[name]:
			g.kinds[id] = kToken
		default:
			g.kinds[id] = kSkip
		}
	}
	g.fields = make([]field, language.FieldCount()+1)
	for id := range g.fields {
		g.fields[id] = fieldNames[language.FieldNameForId(uint16(id))]
	}
	return g
}

// keptTokens are the anonymous nodes that carry meaning: operators and modifiers. Brackets, separators and keywords
// that the named nodes already say are dropped.
var keptTokens = map[string]bool{
	"+": true, "-": true, "*": true, "/": true, "%": true, "**": true, "<<": true, ">>": true, ">>>": true, "&": true,
	"|": true, "^": true, "~": true, "!": true, "==": true, "===": true, "!=": true, "!==": true, "<": true, "<=": true,
	">": true, ">=": true, "&&": true, "||": true, "??": true, "in": true, "of": true, "instanceof": true,
	"typeof": true, "void": true, "delete": true, "++": true, "--": true, "+=": true, "-=": true, "*=": true,
	"/=": true, "%=": true, "**=": true, "<<=": true, ">>=": true, ">>>=": true, "&=": true, "|=": true, "^=": true,
	"&&=": true, "||=": true, "??=": true, "get": true, "set": true, "static": true, "static get": true,
	"async": true, "var": true, "let": true, "const": true, "readonly": true,
}
