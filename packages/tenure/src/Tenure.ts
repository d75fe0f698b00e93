export * from "@tenure/core/Tenure"
